//! Mistakes of the file, its inputs and defaults.

/// Files as a whole.
pub(super) const FILES: &[(&str, &str, &str)] = &[
    ("", "1:1", "the file is empty"),
    ("# only a comment\n", "1:1", "the file is empty"),
    ("- a\n", "1:1", "must be a mapping, not a list"),
    ("name: x\n", "1:1", "`steps` is missing"),
    ("steps: { a: { run: [b] } }\n", "1:1", "`name` is missing"),
    (
        "name: 5\nsteps: { a: { run: [b] } }\n",
        "1:7",
        "in quotes: \"5\"",
    ),
    (
        "name: ' '\nsteps: { a: { run: [b] } }\n",
        "1:7",
        "`name` is empty",
    ),
    (
        "name: x\nstep: {}\nsteps: { a: { run: [b] } }\n",
        "2:1",
        "did you mean `steps`?",
    ),
    (
        "name: x\nsteps: []\n",
        "2:8",
        "must be a mapping of ids, not a list",
    ),
    ("name: x\nsteps: {}\n", "2:1", "`steps` is empty"),
    (
        "name: x\nname: y\nsteps: { a: { run: [b] } }\n",
        "2:1",
        "the key `name` appears twice",
    ),
    (
        "name: x\nsteps: { a: { run: [b] } }\n---\nname: y\n",
        "3:1",
        "second document",
    ),
    ("name: &n x\nsteps: { a: { run: [b] } }\n", "1:7", "anchors"),
    ("name: &n x\ndescription: *n\n", "2:14", "aliases"),
    ("name: !!str x\nsteps: { a: { run: [b] } }\n", "1:7", "tags"),
    (
        "name: x\nsteps: { a: { run: [b] }\n",
        "3:1",
        "not valid YAML",
    ),
    ("name: x\nsteps:\n\ta: 1\n", "3:2", "not valid YAML"),
    ("name: x\n\u{0}", "2:1", "control character"),
    ("name: x\n[a]: b\n", "2:1", "a key must be a text"),
    (
        "name: x\nmax_parallel: 0\nsteps: { a: { run: [b] } }\n",
        "2:15",
        "from 1 to 64",
    ),
    (
        "name: x\nmax_parallel: 65\nsteps: { a: { run: [b] } }\n",
        "2:15",
        "from 1 to 64",
    ),
    (
        "name: x\nmax_parallel: '4'\nsteps: { a: { run: [b] } }\n",
        "2:15",
        "whole number",
    ),
    (
        "name: x\ntimeout: 30\nsteps: { a: { run: [b] } }\n",
        "2:10",
        "such as 30s or 30m",
    ),
    (
        "name: x\ntimeout: soon\nsteps: { a: { run: [b] } }\n",
        "2:10",
        "such as 30s",
    ),
    (
        "name: x\ntimeout: 0s\nsteps: { a: { run: [b] } }\n",
        "2:10",
        "longer than 0",
    ),
    (
        "name: x\nmax_cost_usd: -1\nsteps: { a: { run: [b] } }\n",
        "2:15",
        "above 0",
    ),
    (
        "name: x\nmax_cost_usd: $5\nsteps: { a: { run: [b] } }\n",
        "2:15",
        "amount in USD",
    ),
    (
        "name: x\ndefaults: { agnt: a }\nsteps: { a: { run: [b] } }\n",
        "2:13",
        "did you mean `agent`?",
    ),
    (
        "name: x\ndefaults: { prompt: a }\nsteps: { a: { run: [b] } }\n",
        "2:13",
        "`defaults` has no key",
    ),
    (
        "name: x\ndefaults: { permission: write }\nsteps: { a: { run: [b] } }\n",
        "2:25",
        "read-only, edit",
    ),
    (
        "name: x\ndefaults: { agent: Claude }\nsteps: { a: { run: [b] } }\n",
        "2:20",
        "name of an agent",
    ),
    (
        "name: x\ninputs: { pr: string }\nsteps: { a: { run: [b] } }\n",
        "2:15",
        "write { type: string }",
    ),
    (
        "name: x\ninputs: { pr: { type: strnig } }\nsteps: { a: { run: [b] } }\n",
        "2:23",
        "did you mean `string`?",
    ),
    (
        "name: x\ninputs: { pr: { type: integer, default: a } }\nsteps: { a: { run: [b] } }\n",
        "2:41",
        "an integer, not a text",
    ),
    (
        "name: x\ninputs: { pr: { default: 5 } }\nsteps: { a: { run: [b] } }\n",
        "2:26",
        "write it in quotes: \"5\"",
    ),
    (
        "name: x\ninputs: { pr: { required: yes } }\nsteps: { a: { run: [b] } }\n",
        "2:27",
        "true or false",
    ),
    (
        "name: x\ninputs: { My Pr: {} }\nsteps: { a: { run: [b] } }\n",
        "2:11",
        "write `my-pr`",
    ),
    (
        "name: x\ninputs: { pr: { optional: true } }\nsteps: { a: { run: [b] } }\n",
        "2:17",
        "an input has no key",
    ),
];

//! Mistakes of steps.

/// Steps; the first line is line 3 of the file.
pub(super) const STEPS: &[(&str, &str, &str)] = &[
    ("  a: nothing", "3:6", "must be a mapping"),
    ("  a:", "3:3", "nothing to do"),
    (
        "  a: { agent: claude }",
        "3:3",
        "needs `prompt` or `prompt_file`",
    ),
    ("  Build: { run: [b] }", "3:3", "write `build`"),
    ("  1: { run: [b] }", "3:3", "an id begins with a-z"),
    ("  a: { promt: hi }", "3:8", "did you mean `prompt`?"),
    ("  a: { prompt: '' }", "3:16", "`prompt` is empty"),
    ("  a: { prompt: 7 }", "3:16", "`prompt` must be a text"),
    (
        "  a: { prompt: hi, run: [b] }",
        "3:20",
        "both `prompt` and `run`",
    ),
    (
        "  a: { prompt: hi, prompt_file: b }",
        "3:20",
        "both `prompt` and `prompt_file`",
    ),
    (
        "  a: { prompt_file: missing.md }",
        "3:21",
        "cannot be read: no such file",
    ),
    (
        "  a: { prompt_file: bad.md }",
        "3:21",
        "in `bad.md`, line 2: ",
    ),
    (
        "  a: { run: [b], model: x }",
        "3:18",
        "belongs to an agent step (with `prompt`)",
    ),
    (
        "  a: { prompt: x, env: {} }",
        "3:19",
        "belongs to a step with `run` or `shell`",
    ),
    (
        "  a: { approve: x, retry: { max: 1 } }",
        "3:20",
        "an agent step or a step with",
    ),
    (
        "  a: { approve: x, max_cost_usd: 1 }",
        "3:20",
        "not to one with `approve`",
    ),
    (
        "  a: { run: cargo test }",
        "3:13",
        "write `run: [\"cargo\", \"test\"]`, or use `shell`",
    ),
    ("  a: { run: [] }", "3:13", "names no program"),
    (
        "  a: { run: [sleep, 5] }",
        "3:21",
        "write it in quotes: \"5\"",
    ),
    (
        "  a: { shell: 'echo {{ inputs.x }}' }",
        "3:21",
        "pass the value with `env:",
    ),
    (
        "  a:\n    shell: |\n      ls\n      echo {% if x %}",
        "6:12",
        "`shell` is not a template",
    ),
    ("  a: { shell: ' ' }", "3:15", "`shell` is empty"),
    (
        "  a: { run: [b], env: { '1X': a } }",
        "3:25",
        "name of a variable",
    ),
    (
        "  a: { run: [b], workdir: ' ' }",
        "3:27",
        "`workdir` is empty",
    ),
    ("  a: { run: [b], needs: b }", "3:25", "write [b]"),
    (
        "  a: { run: [b], needs: [bb] }\n  b: { run: [c] }",
        "3:26",
        "unknown step `bb`; did you mean `b`?",
    ),
    (
        "  a: { run: [x], needs: [b, b] }\n  b: { run: [c] }",
        "3:29",
        "names `b` twice",
    ),
    (
        "  a: { run: [b], needs: [a] }",
        "3:3",
        "wait for each other: a -> a",
    ),
    (
        "  a: { run: [x], needs: [b] }\n  b: { run: [x], needs: [c] }\n  c: { run: [x], needs: [a] }",
        "3:3",
        "a -> b -> c -> a",
    ),
    (
        "  a: { prompt: x, continue_from: z }",
        "3:34",
        "unknown step `z`",
    ),
    (
        "  a: { run: [x] }\n  b: { prompt: x, continue_from: a }",
        "4:34",
        "`a` is a step of kind `run`; use `needs: [a]`",
    ),
    (
        "  a: { approve: x }\n  b: { prompt: x, fork_from: a }",
        "4:30",
        "kind `approve`",
    ),
    (
        "  a: { prompt: x, for_each: '[1]' }\n  b: { prompt: x, continue_from: a }",
        "4:34",
        "one conversation for each item",
    ),
    (
        "  a: { prompt: x }\n  b: { prompt: x, continue_from: a, fork_from: a }",
        "4:37",
        "both `continue_from` and `fork_from`",
    ),
    (
        "  a: { prompt: x, continuity: best }",
        "3:19",
        "needs `continue_from` or `fork_from`",
    ),
    (
        "  a: { prompt: x }\n  b: { prompt: x, continue_from: a, continuity: some }",
        "4:49",
        "required, best",
    ),
    (
        "  a: { prompt: x, permission: edits }",
        "3:31",
        "did you mean `edit`?",
    ),
    (
        "  a: { prompt: x, agent: ../x }",
        "3:26",
        "name of an agent",
    ),
    (
        "  a: { prompt: x, model: --bad }",
        "3:26",
        "does not begin with `-`",
    ),
    ("  a: { prompt: x, tools: Read }", "3:26", "write [Read]"),
    ("  a: { prompt: x, retry: 2 }", "3:26", "write { max: 2 }"),
    (
        "  a: { prompt: x, retry: { on: [any] } }",
        "3:19",
        "`retry` needs `max`",
    ),
    (
        "  a: { prompt: x, retry: { max: 2, on: [quotas] } }",
        "3:41",
        "did you mean `quota`?",
    ),
    (
        "  a: { prompt: x, retry: { max: 101 } }",
        "3:33",
        "from 0 to 100",
    ),
    (
        "  a: { prompt: x, retry: { max: 2, wait: 5 } }",
        "3:42",
        "such as 5s",
    ),
    (
        "  a: { prompt: x, output: text }",
        "3:27",
        "must be a JSON Schema",
    ),
    (
        "  a: { prompt: x, output: { properties: {} } }",
        "3:27",
        "`output` needs `type`",
    ),
    (
        "  a: { prompt: x, output: { type: objekt } }",
        "3:27",
        "not a JSON Schema",
    ),
    (
        "  a: { prompt: x, output: { type: object, $ref: 'http://x.y/z' } }",
        "3:27",
        "leads out of the schema",
    ),
    (
        "  a: { run: [x], loop: { while: 'true', max: 2 } }",
        "3:18",
        "`loop` needs `back_to`",
    ),
    (
        "  a: { run: [x], loop: { back_to: b, while: 'true', max: 2 } }",
        "3:35",
        "unknown step `b`",
    ),
    (
        "  a: { run: [x], loop: { back_to: b, while: 'true', max: 2 } }\n  b: { run: [x] }",
        "3:35",
        "add `needs: [b]`",
    ),
    (
        "  a: { run: [x], loop: { back_to: a, while: 'true', max: 0 } }",
        "3:58",
        "from 1 to 100",
    ),
    (
        "  a: { run: [x], for_each: '[1]', loop: { back_to: a, while: 'true', max: 2 } }",
        "3:35",
        "cannot have a `loop`",
    ),
    (
        "  a: { run: [x] }\n  b: { run: [x], needs: [a], loop: { back_to: a, while: 'true', max: 2 } }\n  c: { run: [x], needs: [b], loop: { back_to: b, while: 'true', max: 2 } }",
        "5:30",
        "loops of `b` and `c` overlap",
    ),
    (
        "  a: { run: [x], when: [a] }",
        "3:24",
        "must be an expression",
    ),
    ("  a: { run: [x], when: 'a ==' }", "3:", "not valid"),
    (
        "  a: { run: [x], when: '' }",
        "3:25",
        "the expression is empty",
    ),
    (
        "  a: { prompt: 'x {{ inputs.pr }}' }",
        "3:22",
        "unknown input `pr`; the file declares none",
    ),
    (
        "  a: { prompt: 'x {{ steps.b.text }}' }\n  b: { run: [x] }",
        "3:22",
        "does not wait for `b`; add `needs: [b]`",
    ),
    (
        "  a: { prompt: 'x {{ steps.c.text }}' }\n  b: { run: [x] }",
        "3:22",
        "unknown step `c`",
    ),
    (
        "  a: { prompt: 'x {{ steps.a.text }}' }",
        "3:22",
        "cannot use its own result",
    ),
    (
        "  a: { run: [x] }\n  b: { prompt: '{{ steps.a.txt }}', needs: [a] }",
        "4:20",
        "did you mean `text`?",
    ),
    (
        "  a: { run: [x] }\n  b: { prompt: '{{ steps.a.items }}', needs: [a] }",
        "4:20",
        "only a step with `for_each`",
    ),
    (
        "  a-b: { run: [x] }\n  c: { prompt: '{{ steps.a-b.text }}', needs: [a-b] }",
        "4:20",
        "in quotes: `steps[\"a-b\"]`",
    ),
    (
        "  a: { run: [x] }\n  b: { prompt: '{{ a }}', needs: [a] }",
        "4:20",
        "write `steps.a.text`",
    ),
    (
        "  a: { prompt: '{{ item }}' }",
        "3:20",
        "only in a step with `for_each`",
    ),
    (
        "  a: { prompt: 'x', for_each: '[index]' }",
        "3:33",
        "`for_each` cannot use `index`",
    ),
    (
        "  a: { prompt: '{{ env.HOME }}' }",
        "3:20",
        "unknown name `env`",
    ),
    ("  a: { prompt: '{{ run.key }}' }", "3:20", "only `run.id`"),
    (
        "  a: { prompt: '{{ run.id | uper }}' }",
        "3:29",
        "did you mean `upper`?",
    ),
    (
        "  a: { prompt: '{{ range(5) }}' }",
        "3:20",
        "unknown function `range`",
    ),
    (
        "  a: { prompt: '{{ run.id is strange }}' }",
        "3:30",
        "unknown test `strange`",
    ),
    (
        "  a: { prompt: '{{ run.id.upper() }}' }",
        "3:26",
        "methods are not available",
    ),
    (
        "  a: { prompt: '{% include \"x\" %}' }",
        "3:",
        "`include` is not available",
    ),
    (
        "  a: { prompt: '{% set x = 1 %}' }",
        "3:",
        "`set` is not available",
    ),
    (
        "  a: { prompt: '{% macro m() %}{% endmacro %}' }",
        "3:",
        "`macro` is not available",
    ),
    (
        "  a: { prompt: '{{ \"x\" * 1000000 }}' }",
        "3:20",
        "`*` is not available",
    ),
    (
        "  a: { prompt: '{{ inputs }}' }",
        "3:20",
        "needs the name of an input",
    ),
    (
        "  a: { prompt: '{% for steps in [1] %}{% endfor %}' }",
        "3:24",
        "the name `steps` is taken",
    ),
    ("  a: { prompt: 'x {{ oh' }", "3:", "not valid"),
    (
        "  a:\n    prompt: |\n      one\n      two {{ nope }}",
        "6:14",
        "unknown name `nope`",
    ),
    (
        "  a: { run: [x], when: 'failed(b)' }",
        "3:32",
        "unknown step `b`",
    ),
    (
        "  a: { run: [x], when: 'failed()' }",
        "3:25",
        "takes the id of a step",
    ),
    (
        "  a: { run: [x], when: 'always(1)' }",
        "3:25",
        "takes no argument",
    ),
    (
        "  a:\n    prompt: |\n\n\n      hi\n        deep {{ nope }}",
        "8:17",
        "unknown name `nope`",
    ),
    (
        "  a:\n    prompt: |\n      hi\n      hi\n      {{ nope }}",
        "7:10",
        "unknown name `nope`",
    ),
];

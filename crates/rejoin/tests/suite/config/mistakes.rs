//! Every kind of mistake, named with its line.

use rejoin_testkit::World;

use super::REJOIN;

/// Every kind of mistake, with its line.
#[test]
fn mistakes_are_named_with_file_line_key_and_what_was_meant() {
    let cases = [
        (
            "default_agent = \"demo\"\n[resume]\ncontext_treshold = 0.5\n",
            3,
            "unknown key `resume.context_treshold`; did you mean `resume.context_threshold`?",
        ),
        (
            "breaker = 2\n",
            1,
            "unknown key `breaker`; did you mean `resume.breaker`?",
        ),
        (
            "[resme]\nbreaker = 2\n",
            1,
            "unknown key `resme`; did you mean `resume`?",
        ),
        (
            "[agents.claude]\nmodel = \"x\"\n\nbinn = \"x\"\n",
            4,
            "unknown key `agents.claude.binn`; did you mean `agents.claude.bin`?",
        ),
        (
            "[agents.cluade]\nmodel = \"x\"\n",
            2,
            "`agents.cluade.model`: there is no agent `cluade`; did you mean `claude`?",
        ),
        (
            "[agents.mine]\nmodel = \"x\"\n",
            2,
            "`agents.mine.model`: there is no agent `mine`; an agent of your own needs `agents.mine.bin`",
        ),
        (
            "default_agent = \"claud\"\n",
            1,
            "`default_agent`: there is no agent `claud`; did you mean `claude`?",
        ),
        (
            "\n[resume]\nbreaker = \"two\"\n",
            3,
            "`resume.breaker` is \"two\"; it must be a whole number from 1 to 1000",
        ),
        (
            "[resume]\nbreaker = 0\n",
            2,
            "`resume.breaker` is 0; it must be a whole number from 1 to 1000",
        ),
        (
            "[resume]\ncontext_threshold = 7.0\n",
            2,
            "`resume.context_threshold` is 7.0; it must be a number above 0 and at most 1",
        ),
        (
            "[resume]\nscope = \"all\"\n",
            2,
            "`resume.scope` is \"all\"; it must be one of \"full\", \"agent\"",
        ),
        (
            "resume = 3\n",
            1,
            "`resume` is 3; it must be a section, [resume]",
        ),
        (
            "[agents]\nclaude = \"x\"\n",
            2,
            "`agents.claude` is \"x\"; it must be a section, [agents.claude]",
        ),
        (
            "[agents.claude]\nargs = [\n  \"a\",\n  1,\n]\n",
            4,
            "`agents.claude.args` is [\"a\", 1]; it must be a list of texts",
        ),
        (
            "[agents.claude.env]\nA = \"a\"\nB = 1\n",
            3,
            "`agents.claude.env` is { A = \"a\", B = 1 }; it must be a table of texts, { NAME = \"value\" }",
        ),
        (
            "[agents.claude]\nmodel = \"--dangerously-skip-permissions\"\n",
            2,
            "`agents.claude.model` is \"--dangerously-skip-permissions\"; it must be a single word in quotes",
        ),
        (
            "[snapshots]\nkeep_older = \"30\"\n",
            2,
            "`snapshots.keep_older` is \"30\"; it must be a time like \"12h\" or \"30d\", or \"forever\"",
        ),
        (
            "[notify]\non = [\"waiting\", \"finished\"]\n",
            2,
            "`notify.on` is [\"waiting\", \"finished\"]; it must be a list with any of \"waiting\", \"failed\", \"reseeded\", \"succeeded\", \"cancelled\", \"lost\", \"done\", \"escalated\", \"refused\"",
        ),
        (
            "[models.\"gpt-5.1\".price]\ninput = -1\n",
            2,
            "`models.\"gpt-5.1\".price.input` is -1; it must be a number that is not negative",
        ),
        // Two mistakes: the upper one first, whatever their names.
        (
            "[resume]\nzzz = 1\naaa = 1\n",
            2,
            "unknown key `resume.zzz`; the nearest known key is `resume.scope`",
        ),
    ];
    let world = World::new(REJOIN);
    let file = world.root().join("c.toml");
    let named = file.to_str().unwrap();
    for (text, line, what) in cases {
        std::fs::write(&file, text).unwrap();
        let done = world.run(&["--config", named, "list"]);
        assert_eq!(done.code, 2, "{text}: {done:?}");
        assert_eq!(
            done.stderr,
            format!(
                "error: {named}, line {line}: {what}\n  try: ${{EDITOR:-vi}} +{line} {named}\n"
            )
        );
        let error = world.run(&["--config", named, "list", "--json"]).json()["error"].clone();
        assert_eq!(error["code"], "config");
    }
}

#[test]
fn what_is_no_toml_is_named_with_its_line_too() {
    let world = World::new(REJOIN);
    let file = world.root().join("c.toml");
    let said = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let done = world.run(&["--config", file.to_str().unwrap(), "config", "show"]);
        assert_eq!(done.code, 2, "{done:?}");
        done.stderr
            .lines()
            .next()
            .unwrap()
            .replace(file.to_str().unwrap(), "FILE")
    };
    assert!(said(b"a = 1\nb = \n").starts_with("error: FILE, line 2: "));
    assert!(
        said(b"[resume]\nscope = \"full\"\nscope = \"agent\"\n")
            .starts_with("error: FILE, line 3: duplicate key")
    );
    assert_eq!(
        said(b"# a\n# \xff\n"),
        "error: FILE, line 2: this is not UTF-8"
    );
    assert_eq!(
        said(&b"#".repeat(1 << 21)),
        "error: FILE is no configuration: it is longer than 1 MiB"
    );
    let nowhere = world.root().join("no/such/file");
    let nowhere = nowhere.to_str().unwrap();
    let gone = world.run(&["--config", nowhere, "list"]);
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains(nowhere), "{gone:?}");
}

#[test]
fn mistakes_in_variables_are_named() {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_TIER_NAME", "observe");
    let done = world.run(&["list"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (
            2,
            "error: the variable REJOIN_TIER_NAME is no setting: [[tier]] is set in a file\n  try: unset REJOIN_TIER_NAME\n"
        )
    );
    world.unset("REJOIN_TIER_NAME");
    world.set("REJOIN_RESUME_BRAKER", "3");
    let done = world.run(&["list"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (
            2,
            "error: the variable REJOIN_RESUME_BRAKER is no setting; did you mean REJOIN_RESUME_BREAKER?\n  try: unset REJOIN_RESUME_BRAKER\n"
        )
    );
}

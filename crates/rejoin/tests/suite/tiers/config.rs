//! `[[tier]]` in the configuration: mistakes with their line, trust, and `rejoin tiers`.

use rejoin_testkit::World;
use serde_json::json;

use super::{REJOIN, TIERS, configure};

#[test]
fn mistakes_are_named_with_their_line() {
    let world = World::new(REJOIN);
    let file = world.root().join("c.toml");
    let named = file.to_str().unwrap();
    for (text, line, what) in [
        (
            "[tier]\nname = \"a\"\n",
            1,
            "`tier` is { name = \"a\" }; it must be a list of sections, [[tier]]",
        ),
        (
            "[resume]\nbreaker = 2\n[[tier]]\nmodel = \"haiku\"\n",
            3,
            "a section [[tier]] needs a `name`",
        ),
        (
            "[[tier]]\nname = \"a\"\n[[tier]]\nname = \"a\"\n",
            4,
            "`tier[1].name`: there is another tier `a`; names are unique",
        ),
        (
            "[[tier]]\nname = \"a\"\nagent = \"cluade\"\n",
            3,
            "`tier[0].agent`: there is no agent `cluade`; did you mean `claude`?",
        ),
        (
            "[[tier]]\nname = \"a\"\npermision = \"edit\"\n",
            3,
            "unknown key `tier[0].permision`; did you mean `tier[0].permission`?",
        ),
        (
            "[[tier]]\nname = \"a\"\nmay = [\n  \"x\",\n  2,\n]\n",
            5,
            "`tier[0].may` is [\"x\", 2]; it must be a list of texts",
        ),
        (
            "[[tier]]\nname = \"a\"\nagent = \"codex\"\npermission = \"read-only\"\ntools = [\"shell\", \"Grep\"]\n",
            5,
            "`tier[0].tools`: `Grep` is no tool that Codex can be given or denied; those are shell, edit, web, view_image, goals by their tools, image_generation",
        ),
        (
            "[[tier]]\nname = \"a\"\nagent = \"gemini\"\ndeny_tools = [\"shell(rm)\"]\n",
            4,
            "`tier[0].deny_tools`: Gemini CLI takes whole tools here, not the rule `shell(rm)`",
        ),
        (
            "[[tier]]\nname = \"a\"\nagent = \"claude\"\npermission = \"read-only\"\ntools = [\"Read\", \"Write\"]\n",
            5,
            "`tier[0].tools`: the tool `Write` may write, and the turn is read-only",
        ),
        (
            "[[tier]]\nname = \"a\"\nagent = \"codex\"\nlimit = [{ tool = \"shell\", max = 2, per = \"4h\" }]\n",
            4,
            "`tier[0].limit`: codex asks no program before a call, so no limit of calls can be enforced",
        ),
        (
            "[[tier]]\nname = \"a\"\nagent = \"claude\"\nlimit = [\n  { tool = \"Bash\", max = 2, per = \"4h\" },\n  { tool = \"Bash\", max = 3, per = \"1h\" },\n]\n",
            4,
            "`tier[0].limit`: there are two limits of `Bash`",
        ),
        (
            "[[tier]]\nname = \"a\"\nlimit = [\n  { tool = \"Bash\", max = 2 },\n]\n",
            4,
            "`tier[0].limit` is [{ max = 2, tool = \"Bash\" }]; it must be a list of limits, { tool = \"Bash(docker restart:*)\", max = 2, per = \"4h\" }; a rule is a tool, or a tool with the beginning of a command; at most 1000 calls, within at most 31d",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let done = world.run(&["--config", named, "list"]);
        assert_eq!(done.code, 2, "{text}: {done:?}");
        assert_eq!(
            done.stderr,
            format!(
                "error: {named}, line {line}: {what}\n  try: ${{EDITOR:-vi}} +{line} {named}\n"
            )
        );
    }
}

/// The tiers of a repository count only once it is trusted.
#[test]
fn tiers_of_a_repository_need_trust() {
    let world = World::new(REJOIN);
    std::fs::write(world.work().join("rejoin.toml"), TIERS).unwrap();
    let send = ["send", "-a", "demo", "--tier", "observe", "hello"];
    let refused = world.run(&send);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("tier[0].name"), "{refused:?}");
    let listed = world.run(&["tiers", "--json"]).ok();
    assert_eq!(listed.json()["tiers"], json!([]));
    assert!(listed.stderr.contains("not trusted"), "{listed:?}");
    world.run(&["trust"]).ok();
    let listed = world.run(&["tiers", "--json"]).ok().json();
    assert_eq!(listed["tiers"].as_array().unwrap().len(), 3);
}

/// Each agent's enforced and impossible parts, and the warnings.
#[test]
fn tiers_lists_what_each_agent_enforces() {
    let world = World::new(REJOIN);
    configure(&world, TIERS);
    let view = world.run(&["tiers", "--json"]).ok().json();
    let observe = &view["tiers"][0];
    assert_eq!(observe["name"], "observe");
    assert_eq!(observe["role"], "Tier 1, observer");
    let of = |agent: &str, list: &str| {
        let agents = observe["agents"].as_array().unwrap();
        let found = agents.iter().find(|parts| parts["agent"] == agent).unwrap();
        let parts = found[list].as_array().unwrap().iter();
        parts
            .map(|part| part["part"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("claude", "enforced"),
        ["permission", "tools", "deny_tools"]
    );
    assert!(of("claude", "impossible").is_empty());
    assert!(of("gemini", "impossible").contains(&"deny_tools".to_owned()));
    let warnings = view["warnings"].to_string();
    assert!(
        warnings.contains(
            "tier `remediate` denies `Bash(ansible:*)`, which the lower tier `observe` allows"
        ),
        "{warnings}"
    );
    let checked = world.run(&["tiers", "check"]).ok();
    assert!(
        checked
            .stdout
            .contains("observe  Tier 1, observer · haiku · read-only"),
        "{checked:?}"
    );
    assert!(checked.stdout.contains("enforced"), "{checked:?}");

    let bad =
        "default_agent = \"codex\"\n[[tier]]\nname = \"a\"\nmay = [\"look\"]\ntools = [\"Bash\"]\n";
    configure(&world, bad);
    let checked = world.run(&["tiers", "check"]);
    assert_eq!(checked.code, 5, "{checked:?}");
    assert!(
        checked.stderr.contains("codex cannot enforce the tier `a`"),
        "{checked:?}"
    );
    let unknown = world.run(&["send", "--tier", "b", "x"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("there is no tier `b`; the tiers are a"),
        "{unknown:?}"
    );
}

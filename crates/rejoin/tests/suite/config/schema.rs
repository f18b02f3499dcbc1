//! What is made from the table of keys: the page and the schema.

use rejoin_testkit::World;
use serde_json::{Value, json};

use super::REJOIN;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The example on the configuration page is valid by the schema and by the program.
#[test]
fn the_schema_and_the_program_agree() {
    let world = World::new(REJOIN);
    let schema = world.run(&["config", "schema"]).ok().json();
    assert_eq!(
        schema,
        world.run(&["config", "schema", "--json"]).ok().json()
    );
    let page = std::fs::read_to_string(format!("{ROOT}/docs/configuration.md")).unwrap();
    let example = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let whole = include_str!("whole.toml");
    for (text, good) in [
        (example, true),
        (whole, true),
        ("", true),
        ("[resume]\nbreaker = 0\n", false),
        ("[resume]\nscope = \"x\"\n", false),
        ("[resum]\n", false),
        ("[agents.claude]\nbin = 1\n", false),
        ("[[tier]]\nname = \"observe\"\n", true),
        ("[[tier]]\nmodel = \"haiku\"\n", false),
        ("[models.x]\nwindow = 1.5\n", false),
        ("[notify]\non = [\"x\"]\n", false),
    ] {
        let file = world.root().join("c.toml");
        std::fs::write(&file, text).unwrap();
        let done = world.run(&["--config", file.to_str().unwrap(), "config", "show"]);
        assert_eq!(done.code == 0, good, "{text}: {done:?}");
        let value = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
        assert_eq!(fits(&schema, &value), good, "{text}");
    }
}

/// As much of JSON Schema as the schema uses, but for patterns.
fn fits(schema: &Value, value: &Value) -> bool {
    let Some(rules) = schema.as_object() else {
        return schema == &json!(true);
    };
    rules.iter().all(|(rule, arg)| match rule.as_str() {
        "type" => match arg.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64(),
            "number" => value.is_number(),
            other => panic!("{other}"),
        },
        "enum" => arg.as_array().unwrap().contains(value),
        "anyOf" => arg.as_array().unwrap().iter().any(|s| fits(s, value)),
        "minimum" => value.as_f64().is_some_and(|v| v >= arg.as_f64().unwrap()),
        "maximum" => value.as_f64().is_some_and(|v| v <= arg.as_f64().unwrap()),
        "exclusiveMinimum" => value.as_f64().is_some_and(|v| v > arg.as_f64().unwrap()),
        "minLength" => value
            .as_str()
            .is_some_and(|v| v.len() as u64 >= arg.as_u64().unwrap()),
        "items" => value
            .as_array()
            .is_some_and(|v| v.iter().all(|i| fits(arg, i))),
        "additionalProperties" => value.as_object().is_some_and(|map| {
            let known = &schema["properties"];
            map.iter()
                .all(|(n, v)| fits(known.get(n).unwrap_or(arg), v))
        }),
        "required" => {
            let mut names = arg.as_array().unwrap().iter();
            names.all(|name| value.get(name.as_str().unwrap()).is_some())
        }
        "properties" | "pattern" | "description" | "default" | "title" | "$schema" => true,
        other => panic!("{other}"),
    })
}

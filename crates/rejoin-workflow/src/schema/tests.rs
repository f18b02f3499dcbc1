use super::*;
use crate::template::{Scope, Template};

#[test]
fn every_key_has_a_schema() {
    for key in TOP
        .iter()
        .chain(DEFAULTS)
        .copied()
        .chain(STEP.iter().map(|(key, _)| *key))
    {
        assert_ne!(property(key), json!({}), "{key}");
    }
}

#[test]
fn it_is_a_schema_that_accepts_the_example() {
    let schema = json_schema();
    let validator = jsonschema::options().offline().build(&schema).unwrap();
    let mut mistakes = crate::mistake::Mistakes::default();
    let mut example = crate::yaml::read(crate::EXAMPLE, &mut mistakes)
        .unwrap()
        .json();
    let errors: Vec<String> = validator
        .iter_errors(&example)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    example["steps"]["plan"]["promt"] = json!("x");
    assert!(!validator.is_valid(&example));
    assert!(
        Template::new("x")
            .unwrap()
            .0
            .render(&Scope::default())
            .is_ok()
    );
}

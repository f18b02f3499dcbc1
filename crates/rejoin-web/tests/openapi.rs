//! Properties of the API's description.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::collections::BTreeSet;

/// Generators name functions after them.
#[test]
fn every_operation_has_its_own_name() {
    let document = serde_json::to_value(rejoin_web::document()).unwrap();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
    assert!(names.len() > 25, "{names:?}");
}

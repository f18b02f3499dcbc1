//! The API is a contract: a change of it shows in docs/openapi.json.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::collections::BTreeSet;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[test]
fn docs_openapi_json_is_what_is_served() {
    let document = rejoin_web::document();
    let page = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if std::env::var_os("REGENERATE").is_some() {
        fs_err::write(PAGE, &page).unwrap();
    }
    let found = fs_err::read_to_string(PAGE).unwrap_or_default();
    assert!(
        found == page,
        "docs/openapi.json is out of date; run: REGENERATE=1 cargo test -p rejoin-web"
    );
}

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

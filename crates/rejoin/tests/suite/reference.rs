//! The reference pages in `docs/` are the ones that the code generates.

use std::path::Path;

use rejoin_testkit::World;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

#[test]
fn generated_pages_are_up_to_date() {
    let world = World::new(env!("CARGO_BIN_EXE_rejoin"));
    let folder = world.root().join("pages");
    let written = world
        .run(&["reference", folder.to_str().unwrap(), "--json"])
        .ok()
        .json();
    let pages = written["pages"].as_array().unwrap();
    assert!(pages.len() >= 8, "{pages:?}");
    for page in pages.iter().map(|page| page.as_str().unwrap()) {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(page)).unwrap_or_default();
        assert!(
            read(&folder) == read(Path::new(DOCS)),
            "docs/{page} is out of date; run: cargo run -p rejoin -- reference docs"
        );
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let world = World::new(env!("CARGO_BIN_EXE_rejoin"));
    let file = world.root().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = world.run(&["reference", file.join("pages").to_str().unwrap()]);
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(
        refused.stderr.contains("try: rejoin reference "),
        "{refused:?}"
    );
}

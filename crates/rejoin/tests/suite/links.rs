//! Links in the pages of the repository: files and anchors exist, and so do cited requirements.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns all files with this extension below a folder.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let root = root();
    let top = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    let mut found: Vec<_> = top.iter().map(|page| root.join(page)).collect();
    files(&root.join("docs"), "md", &mut found);
    found
}

/// Returns the text without code blocks and inline code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut lines = vec![];
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Returns the targets of all inline links.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect()
}

/// Returns the anchors of a page's headings, made as code hosts make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(text).lines().filter(|line| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim();
        let letters = title.to_lowercase().chars().collect::<Vec<_>>();
        let kept = letters
            .into_iter()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut unique = anchor.clone();
        for n in 1.. {
            if found.insert(unique) {
                break;
            }
            unique = format!("{anchor}-{n}");
        }
    }
    found
}

/// Returns the complaint about a link of a page, if it leads nowhere.
fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let complaint = format!("{}: {link}", page.display());
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        page.parent()?.join(file)
    };
    if !target.exists() {
        return Some(complaint);
    }
    let leads = anchor.is_empty() || anchors(&read_to_string(&target).ok()?).contains(anchor);
    (!leads).then_some(complaint)
}

#[test]
fn every_relative_link_leads_somewhere() {
    let (mut checked, mut complaints) = (0, vec![]);
    for page in pages() {
        for link in links(&read_to_string(&page).unwrap()) {
            checked += 1;
            complaints.extend(broken(&page, &link));
        }
    }
    assert!(checked > 150, "{checked}");
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_missing_file_and_a_missing_anchor_are_found() {
    let page = root().join("README.md");
    assert_eq!(broken(&page, "docs/errors.md#turns"), None);
    assert_eq!(broken(&page, "https://example.org/nothing"), None);
    assert!(broken(&page, "docs/no-such-page.md").is_some());
    assert!(broken(&page, "docs/errors.md#no-such-heading").is_some());
    assert!(broken(&page, "#no-such-heading").is_some());
}

#[test]
fn every_page_is_in_the_index() {
    let docs = root().join("docs");
    let index = links(&read_to_string(docs.join("README.md")).unwrap());
    let missing: Vec<_> = pages()
        .into_iter()
        .filter_map(|page| Some(page.strip_prefix(&docs).ok()?.to_owned()))
        .filter(|page| page != Path::new("README.md"))
        .filter(|page| {
            !index
                .iter()
                .any(|link| link.split('#').next() == page.to_str())
        })
        .collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:?}");
}

/// Returns the requirements that a text cites: a letter from A to E, a hyphen, two digits.
fn cited(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words
        .filter(|word| {
            let bytes = word.as_bytes();
            matches!(bytes, [b'A'..=b'E', b'-', tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit())
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_cited_requirement_exists() {
    let root = root();
    let page = read_to_string(root.join("docs/requirements.md")).unwrap();
    let known: BTreeSet<_> = page
        .lines()
        .filter_map(|row| row.strip_prefix("| "))
        .flat_map(|row| cited(row.split(' ').next().unwrap_or_default()))
        .collect();
    let mut found = vec![];
    files(&root.join("crates"), "rs", &mut found);
    let mut uses = BTreeSet::new();
    for file in found {
        uses.extend(cited(&read_to_string(file).unwrap()));
    }
    assert!(uses.len() > 40, "{uses:?}");
    let missing: Vec<_> = uses.difference(&known).collect();
    assert!(
        missing.is_empty(),
        "not in docs/requirements.md: {missing:?}"
    );
    let unused: Vec<_> = known
        .difference(&uses)
        .filter(|id| !id.starts_with("A-"))
        .collect();
    assert!(unused.is_empty(), "cited nowhere: {unused:?}");
}

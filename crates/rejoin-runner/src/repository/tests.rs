use std::os::unix::ffi::OsStrExt;

use rejoin_agents::adapter;

use super::*;

/// Makes a folder with no `.git` above it: programs leave some in the system's temporary folder.
fn outside_checkouts() -> tempfile::TempDir {
    let places = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let free = |place: &PathBuf| place.ancestors().all(|it| !it.join(".git").exists());
    let place = places.into_iter().find(free).unwrap();
    tempfile::tempdir_in(place).unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn names_of(places: &[Place], root: &Path) -> Vec<String> {
    let below = places
        .iter()
        .filter(|place| place.in_checkout)
        .filter_map(|place| place.path.strip_prefix(root).ok());
    below.map(|path| path.display().to_string()).collect()
}

#[test]
fn the_outermost_checkout_bounds_the_search() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    let deep = root.join("repo/a/b");
    fs_err::create_dir_all(&deep).unwrap();
    fs_err::create_dir_all(root.join("repo/.git")).unwrap();
    fs_err::create_dir_all(deep.join(".git")).unwrap();
    let found = places(&deep, None);
    assert_eq!(names_of(&found, &root), ["repo/a/b", "repo/a", "repo"]);
    // The user's home is not part of any repository, even where it is a checkout.
    let found = places(&deep, Some(&root.join("repo")));
    assert_eq!(names_of(&found, &root), ["repo/a/b", "repo/a"]);
    assert!(places(&deep, Some(&deep)).is_empty());
}

/// Submodules and worktrees have a file in place of `.git`; neither hides the checkout around it.
#[test]
fn a_submodule_or_worktree_does_not_bound_the_search() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    fs_err::create_dir_all(root.join("repo/.git")).unwrap();
    for (folder, line) in [
        ("repo/sub", "gitdir: ../.git/modules/sub\n"),
        ("repo/.worktrees/two", "gitdir: ../../.git/worktrees/two\n"),
    ] {
        write(&root, &format!("{folder}/.git"), line);
        write(
            &root,
            ".claude/settings.json",
            r#"{"apiKeyHelper":"outside"}"#,
        );
        write(
            &root,
            "repo/.claude/settings.json",
            r#"{"apiKeyHelper":"x"}"#,
        );
        let found = scan(adapter("claude").unwrap(), &root.join(folder), None);
        let paths: Vec<&Path> = found.iter().map(|file| file.path.as_path()).collect();
        assert_eq!(paths, [root.join("repo/.claude/settings.json")], "{folder}");
    }
}

#[test]
fn every_file_has_to_be_trusted_as_it_is() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    fs_err::create_dir(root.join(".git")).unwrap();
    write(&root, ".claude/settings.json", r#"{"apiKeyHelper":"x"}"#);
    write(
        &root,
        ".mcp.json",
        r#"{"mcpServers":{"a":{"command":"b"}}}"#,
    );
    let claude = adapter("claude").unwrap();
    let found = scan(claude, &root, None);
    let standing = |trusted: &[&Found], contained| {
        let files = trusted.iter().map(|file| crate::trust::TrustedFile {
            path: file.path.clone(),
            hash: file.hash.clone().unwrap(),
            keys: vec![],
            at: String::new(),
        });
        let files = files.collect();
        let trust = || TrustList { files };
        let nested = || scan_nested(claude, &root);
        let mode = PermissionMode::Edit;
        let found = scan(claude, &root, None);
        standing(claude, mode, contained, found, trust, nested)
    };
    let proven = Some(RepositoryIsolation::Proven);
    let none = standing(&[], proven);
    assert_eq!(
        (none.config, none.ignored.len()),
        (RepositoryConfig::Ignored, 2)
    );
    assert_eq!(none.refused, None);
    let one = standing(&[&found[0]], proven);
    assert_eq!(one.config, RepositoryConfig::Ignored);
    let all = standing(&[&found[0], &found[1]], None);
    assert_eq!((all.config, all.refused), (RepositoryConfig::Obeyed, None));
    // A definition that is added anywhere in or below the folder revokes the trust.
    for path in [
        ".claude/workflows/a/b.js",
        ".claude/agents/a/b/c.md",
        "deep/er/.claude/skills/x/SKILL.md",
        "deep/.claude/agents/x/y.md",
    ] {
        write(&root, path, "");
        let one_more = standing(&[&found[0], &found[1]], proven);
        assert!(!one_more.config.is_obeyed(), "{path}");
        assert!(one_more.ignored.contains(&root.join(path)), "{path}");
        fs_err::remove_file(root.join(path)).unwrap();
    }
    // A binary that was not proven to ignore such files is not started with them.
    for contained in [
        None,
        Some(RepositoryIsolation::Broken),
        Some(RepositoryIsolation::Untested),
    ] {
        let refused = standing(&[], contained).refused.unwrap();
        assert!(
            refused.contains(".claude/settings.json") && refused.contains(TRUST_HINT),
            "{refused}"
        );
    }
}

#[test]
fn a_plugin_whose_name_is_not_text_is_found() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    let plugins = root.join(".opencode/plugin");
    fs_err::create_dir_all(&plugins).unwrap();
    fs_err::write(plugins.join(std::ffi::OsStr::from_bytes(b"\xff.js")), "").unwrap();
    let found = scan(adapter("opencode").unwrap(), &root, None);
    assert_eq!(
        found.iter().map(|file| &file.hash).collect::<Vec<_>>(),
        [&None]
    );
}

#[test]
fn memory_of_folders_above_comes_first() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    fs_err::create_dir(root.join(".git")).unwrap();
    write(&root, "CLAUDE.md", "of the root\n");
    write(&root, "sub/CLAUDE.local.md", "of the user\n");
    write(&root, "sub/CLAUDE.md", "read by the CLI itself\n");
    let sub = root.join("sub");
    let memory = unread_memory(adapter("claude").unwrap(), &sub, None, &root);
    let files: Vec<(PathBuf, &str)> = memory
        .files
        .iter()
        .map(|file| (PathBuf::from(&file.path), file.text.as_str()))
        .collect();
    assert_eq!(
        files,
        [
            (root.join("CLAUDE.md"), "of the root"),
            (sub.join("CLAUDE.local.md"), "of the user"),
        ]
    );
    assert_eq!(memory.own, None);
}

#[test]
fn memory_does_not_lead_out_of_the_checkout() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    write(&root, "secret", "a key\n");
    write(&root, "repo/AGENTS.md", "of the root\n");
    fs_err::create_dir_all(root.join("repo/.git")).unwrap();
    fs_err::create_dir_all(root.join("repo/sub")).unwrap();
    let link = root.join("repo/CLAUDE.md");
    let texts = |target: &Path| {
        fs_err::remove_file(&link).ok();
        std::os::unix::fs::symlink(target, &link).unwrap();
        let claude = adapter("claude").unwrap();
        let memory = unread_memory(claude, &root.join("repo/sub"), None, &root);
        let texts = memory.files.into_iter().map(|file| file.text);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(texts(Path::new("AGENTS.md")), ["of the root"]);
    assert_eq!(texts(Path::new("../secret")), [] as [&str; 0]);
    assert_eq!(texts(Path::new("/proc/self/environ")), [] as [&str; 0]);
}

/// The CLI reads the file behind the link. Within the checkout it may.
#[test]
fn a_memory_link_out_of_the_checkout_must_be_trusted() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    write(&root, "secret", "a key\n");
    write(&root, "repo/NOTES.md", "of the root\n");
    fs_err::create_dir_all(root.join("repo/.git")).unwrap();
    fs_err::create_dir_all(root.join("repo/sub")).unwrap();
    for (agent, name) in [
        ("claude", "CLAUDE.md"),
        ("gemini", "GEMINI.md"),
        ("opencode", "AGENTS.md"),
    ] {
        let link = root.join("repo").join(name);
        let found = |target: &str| {
            fs_err::remove_file(&link).ok();
            std::os::unix::fs::symlink(target, &link).unwrap();
            let found = scan(adapter(agent).unwrap(), &root.join("repo/sub"), None);
            let mine = found.into_iter().filter(|file| file.path == link);
            mine.map(|file| (file.file.guard, file.hash.is_some()))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("NOTES.md"), [], "{agent}");
        assert_eq!(found("nowhere"), [], "{agent}");
        assert_eq!(found("../secret"), [(Guard::Missing, true)], "{agent}");
        assert_eq!(found("/proc/self/environ"), [(Guard::Missing, true)]);
        fs_err::remove_file(&link).unwrap();
    }
}

/// Gemini CLI and OpenCode read these files, and no flag prevents it.
#[test]
fn files_above_the_checkout_count_where_no_flag_holds() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    fs_err::create_dir_all(root.join("in/.git")).unwrap();
    write(&root, ".env", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1\n");
    write(&root, ".opencode/plugin/evil.js", "");
    write(&root, ".claude/settings.json", r#"{"apiKeyHelper":"x"}"#);
    let found = |agent| {
        let found = scan(adapter(agent).unwrap(), &root.join("in"), None);
        let mine = found
            .into_iter()
            .filter(|file| file.path.starts_with(&root));
        mine.count()
    };
    assert_eq!(
        (found("gemini"), found("opencode"), found("claude")),
        (1, 1, 0)
    );
}

#[test]
fn instructions_of_the_user_are_not_displaced() {
    let dir = outside_checkouts();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    fs_err::create_dir(root.join(".git")).unwrap();
    write(
        &root,
        "home/config.toml",
        "developer_instructions = \"be brief\"\n",
    );
    let memory = || {
        let codex = adapter("codex").unwrap();
        unread_memory(codex, &root, None, &root.join("home"))
    };
    assert_eq!(memory(), Memory::default());
    write(&root, "AGENTS.md", "of the root\n");
    assert_eq!(memory().own.as_deref(), Some("be brief"));
    write(&root, "AGENTS.override.md", "instead\n");
    let texts: Vec<String> = memory().files.into_iter().map(|file| file.text).collect();
    assert_eq!(texts, ["instead"]);
}

//! The native program behind the npm wrapper. On older Node versions the wrapper stays as its
//! parent, and killing the wrapper leaves the program running.

use std::path::{Path, PathBuf};

use super::Codex;
use crate::capability::Wrapper;

/// Package and target for each machine. The current machine's architecture is tried first.
const TARGETS: &[(&str, &str, &str, &str)] = &[
    (
        "linux",
        "x86_64",
        "codex-linux-x64",
        "x86_64-unknown-linux-musl",
    ),
    (
        "linux",
        "aarch64",
        "codex-linux-arm64",
        "aarch64-unknown-linux-musl",
    ),
    ("macos", "x86_64", "codex-darwin-x64", "x86_64-apple-darwin"),
    (
        "macos",
        "aarch64",
        "codex-darwin-arm64",
        "aarch64-apple-darwin",
    ),
];

/// Returns the root of the package if the wrapper is `@openai/codex/bin/codex.js`, in any
/// `node_modules`.
fn package(wrapper: &Path) -> Option<&Path> {
    let is_it = wrapper.file_name()? == "codex.js";
    is_it.then(|| wrapper.parent()?.parent()).flatten()
}

impl Wrapper for Codex {
    /// Lists where Node would find the package of the machine: beneath the wrapper's own package,
    /// beside it (hoisted, or in pnpm's store), or in a `node_modules` further up; finally in the
    /// wrapper's own folder.
    fn native(&self, wrapper: &Path) -> Vec<PathBuf> {
        let Some(package) = package(wrapper) else {
            return vec![];
        };
        let of_machine = |target: &&(&str, &str, &str, &str)| target.0 == std::env::consts::OS;
        let mut targets: Vec<_> = TARGETS.iter().filter(of_machine).collect();
        targets.sort_by_key(|target| target.1 != std::env::consts::ARCH);
        let mut found = vec![];
        for (_, _, name, triple) in targets {
            let program = format!("vendor/{triple}/bin/codex");
            for folder in package.ancestors() {
                let modules = folder.join("node_modules/@openai").join(name);
                found.push(modules.join(&program));
                if folder.file_name().is_some_and(|last| last == "@openai") {
                    found.push(folder.join(name).join(&program));
                }
            }
            found.push(package.join(&program));
            // Layout until 0.4x.
            found.push(package.join(format!("vendor/{triple}/codex/codex")));
            found.push(package.join(format!("bin/codex-{triple}")));
        }
        found
    }

    /// Returns the variables that `codex.js` of 0.166.0 adds.
    fn wrapper_env(&self, wrapper: &Path) -> Vec<(String, String)> {
        let Some(root) = package(wrapper).and_then(Path::to_str) else {
            return vec![];
        };
        let manager = if root.contains("/.pnpm/") {
            "PNPM"
        } else if root.contains("/.bun/install/global") {
            "BUN"
        } else {
            "NPM"
        };
        vec![
            ("CODEX_MANAGED_PACKAGE_ROOT".into(), root.to_owned()),
            (format!("CODEX_MANAGED_BY_{manager}"), "1".into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_node_would_look() {
        let shown = |wrapper: &str| -> Vec<String> {
            let found = Codex.native(Path::new(wrapper)).into_iter();
            found
                .map(|path| path.to_string_lossy().into_owned())
                .collect()
        };
        let arch = std::env::consts::ARCH;
        let machine = TARGETS
            .iter()
            .find(|t| (t.0, t.1) == (std::env::consts::OS, arch));
        let (_, _, name, triple) = machine.unwrap();
        let npm = shown("/u/lib/node_modules/@openai/codex/bin/codex.js");
        let program = format!("vendor/{triple}/bin/codex");
        for place in [
            format!("/u/lib/node_modules/@openai/codex/node_modules/@openai/{name}/{program}"),
            format!("/u/lib/node_modules/@openai/{name}/{program}"),
            format!("/u/node_modules/@openai/{name}/{program}"),
            format!("/u/lib/node_modules/@openai/codex/{program}"),
        ] {
            assert!(npm.contains(&place), "{place} in {npm:#?}");
        }
        assert!(npm[0].contains(triple), "this machine's first: {npm:#?}");
        let pnpm = "/g/.pnpm/@openai+codex@0.166.0/node_modules/@openai/codex/bin/codex.js";
        let beside =
            format!("/g/.pnpm/@openai+codex@0.166.0/node_modules/@openai/{name}/{program}");
        assert!(shown(pnpm).contains(&beside));
        assert_eq!(shown("/usr/bin/codex"), Vec::<String>::new());
    }

    #[test]
    fn the_wrappers_own_variables() {
        let pairs = Codex.wrapper_env(Path::new("/m/@openai/codex/bin/codex.js"));
        let expected = [
            ("CODEX_MANAGED_PACKAGE_ROOT", "/m/@openai/codex"),
            ("CODEX_MANAGED_BY_NPM", "1"),
        ];
        assert_eq!(pairs, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!(Codex.wrapper_env(Path::new("/usr/bin/codex")), []);
    }
}

//! Names of tools that no agent knows.

use rejoin_agents::ADAPTERS;
use rejoin_core::Permissions;

/// A mistyped tool is refused by every agent before anything runs, alone and beside a known one.
#[test]
fn unknown_tools_are_refused() {
    for adapter in ADAPTERS.iter().filter(|it| it.name() != "demo") {
        for tools in [&["foo"][..], &["Read", "-x"]] {
            let permissions = Permissions {
                tools: Some(tools.iter().map(|&tool| tool.to_owned()).collect()),
                ..Permissions::default()
            };
            let refused = adapter.check_permissions(&permissions, false).unwrap_err();
            assert!(refused.contains("tool"), "{}: {refused}", adapter.name());
        }
    }
}

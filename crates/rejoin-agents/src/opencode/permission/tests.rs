use rejoin_core::PermissionMode::{Ask, Edit, Full, ReadOnly};

use super::*;
use crate::tool_names::permissions;

#[test]
fn rules_by_mode() {
    let shown = |mode, tools, deny: &[&str]| {
        let permissions = permissions(mode, tools, deny);
        let rules = super::rules(&permissions).to_string();
        assert!(serde_json::from_str::<Value>(&rules).is_ok(), "{rules}");
        format!("{} {rules}", flags(&permissions).join(" "))
    };
    insta::assert_snapshot!(shown(ReadOnly, None, &[]), @r#" {"*":"deny","codesearch":"allow","glob":"allow","grep":"allow","list":"allow","todoread":"allow","todowrite":"allow","webfetch":"allow","websearch":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(ReadOnly, Some(&["read", "search"]), &["bash", "grep"]), @r#" {"*":"deny","codesearch":"allow","glob":"allow","list":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","bash":"deny","grep":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Edit, None, &[]), @r#" {"*_*":"deny","bash":"deny","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Edit, Some(&["shell", "edit"]), &["bash(git push *)"]), @r#" {"*":"deny","edit":"allow","invalid":"allow","task":"deny","bash":{"*":"allow","git push *":"deny"},"plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Edit, None, &["write", "bash(rm *)", "read(*.pem)"]), @r#" {"*_*":"deny","task":"deny","edit":"deny","bash":"deny","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow","*.pem":"deny"},"plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Ask, Some(&["edit", "web"]), &[]), @r#" {"*":"deny","webfetch":"allow","websearch":"allow","invalid":"allow","task":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Full, None, &[]), @r#"--auto {"plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Full, None, &["shell", "mcp_*"]), @r#"--auto {"task":"deny","bash":"deny","mcp_*":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
    insta::assert_snapshot!(shown(Full, Some(&["bash", "mcp_x"]), &["mcp_*"]), @r#"--auto {"*":"deny","bash":"allow","mcp_x":"allow","invalid":"allow","external_directory":"allow","doom_loop":"allow","task":"deny","mcp_*":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}"#);
}

#[test]
fn what_cannot_be_expressed_is_said() {
    fn said(mode: PermissionMode, tools: Option<&[&str]>, deny: &[&str]) -> String {
        check(&permissions(mode, tools, deny))
            .err()
            .unwrap_or_default()
    }
    assert_eq!(
        said(ReadOnly, Some(&["read", "search", "web"]), &["bash(x)"]),
        ""
    );
    assert_eq!(said(Full, None, &["task", "mcp_*"]), "");
    assert!(said(ReadOnly, Some(&["shell"]), &[]).contains("`bash` may write"));
    assert!(said(ReadOnly, Some(&["read", "my_tool"]), &[]).contains("may write"));
    // Without one known tool the name is more likely a mistake than a plugin's.
    assert!(said(ReadOnly, Some(&["my_tool"]), &[]).contains("my_tool"));
    assert!(said(Edit, Some(&["bash(ls *)"]), &[]).contains("rules can be denied"));
    assert!(said(Edit, Some(&["write"]), &[]).contains("name `edit`"));
    assert!(said(Full, Some(&["task"]), &[]).contains("sub-agents"));
    assert!(said(Full, None, &["Bash"]).contains("calls the tool `bash`"));
    for bad in [
        "", "-p", "--tools", " bash", "a b", "bash(", "bash(x", "bash()", "(x)", "a,b",
    ] {
        assert!(!said(Edit, Some(&[bad]), &[]).is_empty(), "{bad:?}");
        assert!(!said(Edit, None, &[bad]).is_empty(), "{bad:?}");
        let rules = super::rules(&permissions(Full, None, &[bad])).to_string();
        let none = super::rules(&permissions(Full, None, &["task"])).to_string();
        assert_eq!(rules, none, "{bad:?}");
    }
}

#[test]
fn a_person_is_asked_for_what_a_turn_leaves_out() {
    let shown = |mode, tools, deny: &[&str]| {
        let rules = super::rules_for_a_person(&permissions(mode, tools, deny)).to_string();
        assert!(serde_json::from_str::<Value>(&rules).is_ok(), "{rules}");
        rules
    };
    insta::assert_snapshot!(shown(Edit, None, &[]), @r#"{"*_*":"ask","bash":"ask","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny"}"#);
    insta::assert_snapshot!(shown(Edit, None, &["bash(rm *)", "mcp_x"]), @r#"{"*_*":"ask","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","bash":{"*":"ask","rm *":"deny"},"mcp_x":"deny"}"#);
    insta::assert_snapshot!(shown(Edit, None, &["shell"]), @r#"{"*_*":"ask","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","bash":"deny"}"#);
    insta::assert_snapshot!(shown(Edit, Some(&["read", "edit"]), &[]), @r#"{"*":"deny","edit":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny"}"#);
    insta::assert_snapshot!(shown(Ask, None, &[]), @r#"{"*":"deny","codesearch":"allow","glob":"allow","grep":"allow","list":"allow","todoread":"allow","todowrite":"allow","webfetch":"allow","websearch":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","*_*":"ask","bash":"ask","edit":"ask"}"#);
    insta::assert_snapshot!(shown(Ask, Some(&["edit", "web"]), &[]), @r#"{"*":"deny","webfetch":"allow","websearch":"allow","invalid":"allow","task":"deny","edit":"ask"}"#);
    insta::assert_snapshot!(shown(Ask, None, &["mcp_x", "my_tool(a*)", "edit(*.lock)"]), @r#"{"*":"deny","codesearch":"allow","glob":"allow","grep":"allow","list":"allow","todoread":"allow","todowrite":"allow","webfetch":"allow","websearch":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","*_*":"ask","bash":"ask","mcp_x":"deny","my_tool":{"a*":"deny"},"edit":{"*":"ask","*.lock":"deny"}}"#);
    insta::assert_snapshot!(shown(Full, None, &["shell"]), @r#"{"task":"deny","bash":"deny"}"#);
    let read_only = shown(ReadOnly, None, &[]);
    let turn = super::rules(&permissions(ReadOnly, None, &[])).to_string();
    assert!(
        turn.starts_with(read_only.trim_end_matches('}')),
        "{read_only}"
    );
}

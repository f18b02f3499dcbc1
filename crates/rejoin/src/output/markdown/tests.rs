use super::rendered;

#[test]
fn a_page() {
    let text = "# Title\n\nSome *text* with `code` and a [link](https://x.y), <https://z.w>.\n\n- one\n- two is so long that it goes on\n  - inner\n\n1. first\n2. second\n\n```rust\nfn main() {}\n\n```\n> quoted\n\n| a | bb |\n|---|---|\n| 1 | 2 |\n\n<b>html</b>\n\n---\nend";
    let shown: Vec<String> = rendered(text, 30).iter().map(|l| l.render(false)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Title

    Some text with code and a
    link <https://x.y>,
    https://z.w.

    • one
    • two is so long that it goes
      on
      • inner

    1. first
    2. second

      rust
        fn main() {}

    │ quoted

    a  bb
    1  2

    <b>html</b>

    ──────────────────────────────

    end
    "#);
}

//! Mutated files: never a panic, always a position.

use proptest::prelude::*;

use super::*;

fn read(text: &str) {
    if let Err(mistakes) = parse(text, &|file| Err(format!("no file {file}"))) {
        assert!(!mistakes.is_empty(), "{text}");
        assert!(
            mistakes
                .iter()
                .all(|mistake| mistake.line >= 1 && mistake.column >= 1),
            "{mistakes:?}"
        );
        assert!(mistakes.iter().all(|mistake| !mistake.text.is_empty()));
        assert!(mistakes.is_sorted_by_key(|mistake| (mistake.line, mistake.column)));
    }
}

/// Texts that are inserted.
const ODD: &[&str] = &[
    "\0", "{{", "}}", "{%", "\"", "'", "&a", "*a", "!t ", "\t", "\u{feff}", "é", "\r", ": ", "- ",
    "|\n", "---\n", "]",
];

#[test]
fn lines_and_bytes() {
    let file = crate::EXAMPLE;
    let lines: Vec<&str> = file.lines().collect();
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        read(&without.join("\n"));
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        read(&twice.join("\n"));
        let mut swapped = lines.clone();
        swapped.swap(at, (at + 1) % lines.len());
        read(&swapped.join("\n"));
        let indented = format!("  {}", lines[at]);
        let mut moved = lines.clone();
        moved[at] = &indented;
        read(&moved.join("\n"));
    }
    for at in (0..file.len())
        .step_by(7)
        .filter(|at| file.is_char_boundary(*at))
    {
        read(&file[..at]);
        read(&file[at..]);
        for odd in ODD.iter().cycle().skip(at / 7).take(3) {
            read(&format!("{}{odd}{}", &file[..at], &file[at..]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn odd_texts(text in "[a-z{}%\\[\\]:,&*!|>'\"#\\- \\n\\t.()]{0,200}") {
        read(&text);
        read(&format!("name: x\nsteps:\n  a:\n    prompt: |\n      {}\n", text.replace('\n', "\n      ")));
    }

    #[test]
    fn odd_templates(text in "(\\{\\{|\\}\\}|\\{%|%\\}|if|for|in|endif|endfor|else|steps|inputs|a|b|\\.|\\||\\(|\\)|\\[|\\]|\"x\"|1|==| |-|~){0,40}") {
        if let Err(faults) = crate::template::Template::new(&text) {
            assert!(faults.iter().all(|fault| fault.offset <= text.len()));
        }
        if let Err(faults) = crate::template::Expression::new(&text) {
            assert!(faults.iter().all(|fault| fault.offset <= text.len()));
        }
    }
}

//! Templates of operators in place of the built-in escalation prompt: `{{ role }}` is replaced by a
//! value. Values are text, never templates.

/// Names that a template may contain.
pub const TEMPLATE_VARIABLES: [&str; 10] = [
    "tier",
    "role",
    "may",
    "tools",
    "deny_tools",
    "limits",
    "dry_run",
    "previous",
    "reason",
    "chain",
];

/// Error in a template, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct TemplateError {
    pub line: usize,
    pub what: String,
}

/// Checks that a template contains no other variables.
pub fn check_template(template: &str) -> Result<(), TemplateError> {
    let mut at = 0;
    for piece in pieces(template) {
        let line = template[..at].matches('\n').count() + 1;
        match piece {
            Piece::Text(text) => at += text.len(),
            Piece::Variable { name, source } => {
                if !TEMPLATE_VARIABLES.contains(&name) {
                    let known = TEMPLATE_VARIABLES.join(", ");
                    let what = format!("there is no variable `{name}`; they are {known}");
                    return Err(TemplateError { line, what });
                }
                at += source.len();
            }
            Piece::Open => {
                let what = "`{{` without `}}`".to_owned();
                return Err(TemplateError { line, what });
            }
        }
    }
    Ok(())
}

/// Fills a template. `value` returns the value of a variable; an unknown one stays as it is.
pub fn fill_template(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::new();
    let mut left = template.len();
    for piece in pieces(template) {
        match piece {
            Piece::Text(text) => {
                filled.push_str(text);
                left -= text.len();
            }
            Piece::Variable { name, source } => {
                filled.push_str(value(name).as_deref().unwrap_or(source));
                left -= source.len();
            }
            Piece::Open => filled.push_str(&template[template.len() - left..]),
        }
    }
    filled
}

enum Piece<'a> {
    Text(&'a str),
    /// Name, and the text that it was read from.
    Variable {
        name: &'a str,
        source: &'a str,
    },
    /// Braces that are never closed.
    Open,
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut found = vec![];
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        let (text, variable) = rest.split_at(open);
        if !text.is_empty() {
            found.push(Piece::Text(text));
        }
        let Some(close) = variable.find("}}") else {
            found.push(Piece::Open);
            return found;
        };
        let (source, after) = variable.split_at(close + 2);
        let name = source[2..source.len() - 2].trim();
        found.push(Piece::Variable { name, source });
        rest = after;
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_templates() {
        let template = "As {{role}}: {{ reason }}\n{\"escalate\": {\"to\": \"x\"}}";
        assert_eq!(check_template(template), Ok(()));
        let value = |name: &str| match name {
            "role" => Some("{{ reason }}".to_owned()),
            "reason" => Some("db is down".to_owned()),
            _ => None,
        };
        assert_eq!(
            fill_template(template, value),
            "As {{ reason }}: db is down\n{\"escalate\": {\"to\": \"x\"}}"
        );
        assert_eq!(fill_template("{{ other }} {{", value), "{{ other }} {{");
    }

    #[test]
    fn mistakes_have_a_line() {
        let wrong = check_template("a\nb {{ findings }}").unwrap_err();
        assert_eq!(wrong.line, 2);
        assert!(
            wrong
                .what
                .starts_with("there is no variable `findings`; they are tier, role")
        );
        assert_eq!(check_template("{{ role }}\n\n{{ may").unwrap_err().line, 3);
    }
}

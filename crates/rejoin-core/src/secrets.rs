//! Removes secrets from text that leaves the store: keys and tokens of known forms, private keys,
//! passwords in addresses, and values assigned to names such as `password`.
//!
//! A secret of another form stays. The result is for reading, never for restoring a session.

/// Text in the place of a secret.
pub const REMOVED: &str = "[secret removed]";

/// Beginnings of tokens, and the least number of characters that follow.
const PREFIXES: [(&str, usize); 24] = [
    ("sk-ant-", 16),
    ("sk-proj-", 16),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("sk-", 24),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("hf_", 30),
    ("dop_v1_", 30),
    ("rejoin_", 40),
    ("pypi-", 40),
    ("eyJ", 60),
];

/// Names whose assigned value is a secret.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "auth_token",
    "access_token",
    "private_key",
    "client_secret",
    "secret_key",
];

/// Shortest value of such a name that counts.
const SHORTEST: usize = 6;

/// Removes secrets. Returns the text and their number.
pub fn without_secrets(text: &str) -> (String, usize) {
    let (text, keys) = without_private_keys(text);
    let mut found = keys;
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // A token stands between characters that it cannot contain.
    while !rest.is_empty() {
        let inside = rest.find(is_boundary).unwrap_or(rest.len());
        let (word, after) = rest.split_at(inside);
        if !word.is_empty() && (is_token(word) || (is_assigned(&kept) && is_value(word))) {
            kept.push_str(REMOVED);
            found += 1;
        } else {
            kept.push_str(word);
        }
        let boundary = after.chars().next().map_or(0, char::len_utf8);
        kept.push_str(&after[..boundary]);
        rest = &after[boundary..];
    }
    let (kept, passwords) = without_passwords(kept);
    (kept, found + passwords)
}

fn is_boundary(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || "-_.+~/".contains(c))
}

fn is_token(word: &str) -> bool {
    let of_token = |c: char| c.is_ascii_alphanumeric() || "-_.+/~".contains(c);
    let known = |(prefix, least): &(&str, usize)| {
        // A path or an address may stand before it.
        let at = word.rfind('/').map_or(0, |at| at + 1);
        let tails = [Some(word), word.get(at..)];
        tails.into_iter().flatten().any(|word| {
            let tail = word.strip_prefix(prefix);
            tail.is_some_and(|tail| tail.len() >= *least && tail.chars().all(of_token))
        })
    };
    PREFIXES.iter().any(known)
}

/// Returns true if the text ends with a secret's name and a sign of assignment, or with `Bearer`.
fn is_assigned(before: &str) -> bool {
    let trimmed = before.trim_end_matches([' ', '"', '\'', '`']);
    if before.len() - trimmed.len() <= 2 && trimmed.to_ascii_lowercase().ends_with("bearer") {
        return before.ends_with(' ');
    }
    let Some(name) = trimmed.strip_suffix(['=', ':']) else {
        return false;
    };
    let name = name.trim_end_matches([' ', '"', '\'', '`']);
    let tail: String = name.chars().rev().take(24).collect();
    let tail: String = tail.chars().rev().collect::<String>().to_ascii_lowercase();
    NAMES.iter().any(|known| tail.ends_with(known))
}

/// Returns true if a word is a value rather than code that reads one.
fn is_value(word: &str) -> bool {
    let code = [
        "process.env",
        "os.environ",
        "std::env",
        "true",
        "false",
        "null",
        "None",
    ];
    word.len() >= SHORTEST && !code.iter().any(|begin| word.starts_with(begin))
}

fn without_private_keys(text: &str) -> (String, usize) {
    let (mut kept, mut rest, mut found) = (String::with_capacity(text.len()), text, 0);
    while let Some(at) = rest.find("-----BEGIN ") {
        let (before, block) = rest.split_at(at);
        let line = block.lines().next().unwrap_or_default();
        if !line.contains("PRIVATE KEY") {
            let next = at + "-----BEGIN ".len();
            kept.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        kept.push_str(before);
        kept.push_str(REMOVED);
        found += 1;
        let end = block.find("-----END ").map_or(block.len(), |end| {
            let tail = &block[end..];
            end + tail.find('\n').unwrap_or(tail.len())
        });
        rest = &block[end..];
    }
    kept.push_str(rest);
    (kept, found)
}

/// Removes passwords from addresses: `https://user:password@host`.
fn without_passwords(text: String) -> (String, usize) {
    if !text.contains("://") {
        return (text, 0);
    }
    let (mut kept, mut rest, mut found) = (String::with_capacity(text.len()), text.as_str(), 0);
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        kept.push_str(before);
        let end = address.find(|c: char| c.is_whitespace() || "/?#\"'<>`".contains(c));
        let authority = &address[..end.unwrap_or(address.len())];
        let user = authority.rsplit_once('@').and_then(|(user, host)| {
            let (name, password) = user.split_once(':')?;
            (!password.is_empty() && password != REMOVED).then_some((name, host))
        });
        match user {
            Some((name, host)) => {
                kept.push_str(name);
                kept.push(':');
                kept.push_str(REMOVED);
                kept.push('@');
                kept.push_str(host);
                found += 1;
            }
            None => kept.push_str(authority),
        }
        rest = &address[authority.len()..];
    }
    kept.push_str(rest);
    (kept, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(text: &str) -> usize {
        let (kept, found) = without_secrets(text);
        assert_eq!(kept.matches(REMOVED).count(), found, "{kept}");
        found
    }

    #[test]
    fn known_forms_are_removed() {
        let tail = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        for prefix in ["sk-ant-api03-", "ghp_", "xoxb-", "AKIA", "sk-"] {
            let text = format!("use {prefix}{tail}, please");
            let (kept, found) = without_secrets(&text);
            assert_eq!((kept.as_str(), found), ("use [secret removed], please", 1));
        }
        for (text, left) in [
            ("password: hunter2x!", "password: [secret removed]!"),
            ("API_KEY=\"abcdef123\"", "API_KEY=\"[secret removed]\""),
            (
                "Authorization: Bearer abc.def-123",
                "Authorization: Bearer [secret removed]",
            ),
            (
                "postgres://ada:s3cr3t@db/x",
                "postgres://ada:[secret removed]@db/x",
            ),
        ] {
            let (kept, found) = without_secrets(text);
            assert_eq!((kept.as_str(), found), (left, 1));
        }
        let key = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb";
        assert_eq!(without_secrets(key), ("a\n[secret removed]\nb".into(), 1));
        let open = "-----BEGIN PRIVATE KEY-----\nMIIE";
        assert_eq!(without_secrets(open), (REMOVED.into(), 1));
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "",
            "the password is asked for by the form",
            "password = process.env.PASSWORD",
            "sk-learn and AKIA are words; sk-short",
            "https://example.org/a:b@c and a://b",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "ümlaut 😀 \u{0} [secret removed]",
        ] {
            let (kept, found) = without_secrets(text);
            assert_eq!((kept.as_str(), found), (text, 0));
        }
        assert_eq!(
            removed("token ghp_0123456789abcdefghij and ghp_0123456789abcdefghij"),
            2
        );
    }
}

//! Keys, out of the bytes a terminal sends for them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Back,
    Clear,
    Enter,
    /// Esc, or what interrupts.
    Leave,
    Other,
}

/// First byte of a key of several bytes; alone, the Escape key.
const ESC: u8 = 0x1b;

/// All keys in these bytes; what may be the beginning of one more is left in them.
pub(super) fn keys(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut found = vec![];
    let mut rest = &bytes[..];
    while let Some((key, length)) = next(rest) {
        found.push(key);
        rest = &rest[length..];
    }
    *bytes = rest.to_vec();
    found
}

/// Nothing follows: what was left is a key of its own.
pub(super) fn last(bytes: &mut Vec<u8>) -> Option<Key> {
    let left = std::mem::take(bytes);
    match left.first() {
        Some(&ESC) => Some(Key::Leave),
        Some(_) => Some(Key::Other),
        None => None,
    }
}

fn next(bytes: &[u8]) -> Option<(Key, usize)> {
    let key = match *bytes.first()? {
        ESC => return sequence(bytes),
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Back,
        // As in a shell: all of the line; up and down as in an editor.
        0x15 => Key::Clear,
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x03 | 0x04 => Key::Leave,
        0x00..=0x1f => Key::Other,
        byte => return letter(bytes, byte),
    };
    Some((key, 1))
}

fn letter(bytes: &[u8], first: u8) -> Option<(Key, usize)> {
    let length = match first {
        0x00..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        0x80..=0xbf | 0xf8.. => return Some((Key::Other, 1)),
    };
    let text = std::str::from_utf8(bytes.get(..length)?);
    let letter = text.ok().and_then(|text| text.chars().next());
    match letter.filter(|letter| !letter.is_control()) {
        Some(letter) => Some((Key::Letter(letter), length)),
        None => Some((Key::Other, 1)),
    }
}

/// `ESC [ A`, `ESC O A`, `ESC [ 5 ~`.
fn sequence(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes.get(1)? {
        b'[' | b'O' => {}
        _ => return Some((Key::Leave, 1)),
    }
    let end = bytes
        .iter()
        .skip(2)
        .position(|b| (0x40..=0x7e).contains(b))?
        + 2;
    let key = match &bytes[2..=end] {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"H" | b"1~" | b"7~" => Key::First,
        b"F" | b"4~" | b"8~" => Key::Last,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => Key::Other,
    };
    Some((key, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> (Vec<Key>, Vec<u8>) {
        let mut bytes = bytes.to_vec();
        (keys(&mut bytes), bytes)
    }

    #[test]
    fn bytes_become_keys() {
        let (found, left) = of("aé日😀\r\x7f\x15\x03".as_bytes());
        let letters = ['a', 'é', '日', '😀'].map(Key::Letter);
        let rest = [Key::Enter, Key::Back, Key::Clear, Key::Leave];
        assert_eq!(found, [letters, rest].concat());
        assert!(left.is_empty());
        let (found, _) = of(b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[1;5C");
        let moves = [Key::Up, Key::Down, Key::PageUp, Key::PageDown];
        assert_eq!(
            found,
            [&moves[..], &[Key::First, Key::Last, Key::Other]].concat()
        );
    }

    #[test]
    fn what_is_not_whole_waits() {
        assert_eq!(of(b"\x1b"), (vec![], b"\x1b".to_vec()));
        assert_eq!(of(b"a\x1b[5"), (vec![Key::Letter('a')], b"\x1b[5".to_vec()));
        assert_eq!(of(&"é".as_bytes()[..1]).1.len(), 1);
        assert_eq!(last(&mut b"\x1b".to_vec()), Some(Key::Leave));
        assert_eq!(last(&mut vec![]), None);
        // Whatever comes, it ends.
        assert_eq!(of(b"\xff\xc3(\x1bx").0.len(), 5);
    }
}

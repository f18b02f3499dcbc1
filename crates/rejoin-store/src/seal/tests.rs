//! Issue 6, "done when" 2 for a single chunk: changed, cut, swapped, inflated. (B-16, B-29)

use super::*;

const KEY: [u8; 32] = [7; 32];
const OLD: [u8; 32] = [9; 32];

fn sealers() -> [Sealer; 3] {
    [
        Sealer::plain(),
        Sealer::with_keys(&KEY, &[]),
        Sealer::with_keys(&KEY, &[OLD]),
    ]
}

/// Chunks that compress, that do not, the smallest and the largest.
fn chunks() -> Vec<Vec<u8>> {
    let noise = |length: usize| {
        let mut bytes = vec![0; length];
        blake3::Hasher::new()
            .update(b"noise")
            .finalize_xof()
            .fill(&mut bytes);
        bytes
    };
    vec![
        br#"{"type":"user","text":"hello hello hello hello hello hello hello"}"#.repeat(4),
        noise(300),
        Vec::new(),
        vec![b'x'],
        noise(LONGEST_CHUNK),
        vec![b'\n'; LONGEST_CHUNK],
    ]
}

fn open(with: &Sealer, plain: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Unsealed> {
    with.open(&with.name(plain), plain.len() as u32, sealed)
}

#[track_caller]
fn assert_damaged(what: &Result<Vec<u8>, Unsealed>) {
    assert!(matches!(what, Err(Unsealed::Damaged(_))), "{what:?}");
}

#[test]
fn what_was_sealed_opens_to_the_same_bytes() {
    for sealer in sealers() {
        for plain in chunks() {
            let sealed = sealer.seal(&plain);
            assert!(sealed.len() <= LONGEST_SEALED);
            assert_eq!(open(&sealer, &plain, &sealed), Ok(plain.clone()));
            assert_eq!(sealer.seal(&plain), sealed, "the same twice");
        }
    }
}

#[test]
fn text_is_packed_and_noise_is_not() {
    let sealer = Sealer::plain();
    let [text, noise] = [&chunks()[0], &chunks()[1]];
    assert!(sealer.seal(text).len() < text.len() / 2);
    assert_eq!(sealer.seal(noise).len(), noise.len() + 1 + CHECK);
}

#[test]
fn every_changed_byte_is_damage() {
    for sealer in sealers() {
        for plain in &chunks()[..4] {
            let sealed = sealer.seal(plain);
            for at in 0..sealed.len() {
                for change in [0x01, 0x10, 0x11, 0x80, 0xff] {
                    let mut changed = sealed.clone();
                    changed[at] ^= change;
                    assert_damaged(&open(&sealer, plain, &changed));
                }
            }
        }
    }
}

#[test]
fn whatever_is_cut_or_added_is_damage() {
    for sealer in sealers() {
        for plain in &chunks()[..4] {
            let sealed = sealer.seal(plain);
            for length in 0..sealed.len() {
                assert_damaged(&open(&sealer, plain, &sealed[..length]));
            }
            for tail in [&b"\0"[..], b"x", &sealed] {
                assert_damaged(&open(&sealer, plain, &[&sealed, tail].concat()));
            }
        }
    }
}

#[test]
fn another_chunk_under_this_name_is_damage() {
    for sealer in sealers() {
        let [one, other] = [b"the first thing".as_slice(), b"another thing!!"];
        assert_damaged(&open(&sealer, one, &sealer.seal(other)));
        // Also in another form: sealed without a key, under a name made with one.
        assert_damaged(&open(
            &Sealer::with_keys(&KEY, &[]),
            one,
            &Sealer::plain().seal(one),
        ));
    }
}

#[test]
fn a_check_that_fits_does_not_help_a_forger() {
    let sealer = Sealer::with_keys(&KEY, &[]);
    let plain = &chunks()[0];
    let sealed = sealer.seal(plain);
    for at in 1 + CHECK + KEY_ID..sealed.len() {
        let mut rest = sealed[1 + CHECK..].to_vec();
        rest[at - 1 - CHECK] ^= 1;
        assert_damaged(&open(&sealer, plain, &framed(sealed[0], &[&rest])));
    }
    // Nor does a claim that it was not packed.
    assert_damaged(&open(
        &sealer,
        plain,
        &framed(SECRET_AS_IS, &[&sealed[1 + CHECK..]]),
    ));
}

#[test]
fn bombs_are_refused() {
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
    // A frame that does not state its content size.
    let mut silent = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    std::io::Write::write_all(&mut silent, &vec![0; 8 << 20]).unwrap();
    // A frame that claims a terabyte: magic, eight bytes of content size, an empty last block.
    let liar = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..],
        &(1_u64 << 40).to_le_bytes(),
        &[1, 0, 0],
    ]
    .concat();
    for bomb in [bomb, silent.finish().unwrap(), liar] {
        assert!(bomb.len() < LONGEST_CHUNK);
        let sealed = framed(PACKED, &[&bomb]);
        for length in [0, 1, 100, LONGEST_CHUNK as u32] {
            let plain = vec![0; length as usize];
            let name = *blake3::hash(&plain).as_bytes();
            assert_damaged(&Sealer::plain().open(&name, length, &sealed));
        }
    }
}

#[test]
fn absurd_lengths_are_refused() {
    let sealer = Sealer::plain();
    for length in [LONGEST_CHUNK as u32 + 1, u32::MAX] {
        let sealed = sealer.seal(b"x");
        let name = sealer.name(b"x");
        assert_damaged(&sealer.open(&name, length, &sealed));
    }
    let long = framed(AS_IS, &[&vec![0; LONGEST_SEALED]]);
    assert_damaged(&sealer.open(&[0; 32], LONGEST_CHUNK as u32, &long));
}

#[test]
fn another_key_is_told_apart_from_damage() {
    let sealed = Sealer::with_keys(&OLD, &[]).seal(b"secret");
    let name = Sealer::with_keys(&OLD, &[]).name(b"secret");
    let key = Sealer::with_keys(&OLD, &[]).key_id().unwrap();
    for other in [Sealer::plain(), Sealer::with_keys(&KEY, &[])] {
        let opened = other.open(&name, 6, &sealed);
        assert_eq!(opened, Err(Unsealed::WrongKey { key: key.clone() }));
        let mut changed = sealed.clone();
        changed[1 + CHECK] ^= 1;
        assert_damaged(&other.open(&name, 6, &changed));
    }
}

#[test]
fn keys_are_rotated() {
    let before = Sealer::with_keys(&OLD, &[]);
    let after = Sealer::with_keys(&KEY, &[OLD]);
    for earlier in [&before, &Sealer::plain()] {
        let opened = after.open(&earlier.name(b"text"), 4, &earlier.seal(b"text"));
        assert_eq!(opened.unwrap(), b"text");
    }
    let sealed = after.seal(b"text");
    let opened = before.open(&after.name(b"text"), 4, &sealed);
    assert_eq!(
        opened,
        Err(Unsealed::WrongKey {
            key: after.key_id().unwrap()
        })
    );
}

#[test]
fn a_key_hides_names_and_bytes() {
    let plain = b"a prompt that somebody could guess".as_slice();
    let sealer = Sealer::with_keys(&KEY, &[]);
    assert_ne!(sealer.name(plain), *blake3::hash(plain).as_bytes());
    assert_ne!(sealer.name(plain), Sealer::with_keys(&OLD, &[]).name(plain));
    let sealed = sealer.seal(plain);
    for window in [&plain[..4], &KEY[..4]] {
        assert!(!sealed.windows(4).any(|bytes| bytes == window));
    }
    assert_eq!(sealer.key_id().unwrap().len(), 16);
    assert_eq!(Sealer::plain().key_id(), None);
    let shown = format!("{sealer:?}");
    assert!(
        !shown.contains("7, 7") && !shown.contains("0707"),
        "{shown}"
    );
}

//! Stored form of a chunk: packed, encrypted if there is a key, and checked when opened. Stored
//! bytes are untrusted: no value in them decides how much memory is allocated.
//!
//! `form (1) · check (8) · rest`. The check covers form and rest, so that bit rot can be told from
//! a wrong key, even without the key. The rest is the packed chunk, or with a key `key id (8) ·
//! nonce (24) · ciphertext and tag`.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use rejoin_core::hex;

use crate::chunks::LARGEST as LONGEST_CHUNK;

/// Maximum length of a sealed chunk: form, check, key id, nonce and tag in addition to the chunk.
pub(crate) const LONGEST_SEALED: usize = LONGEST_CHUNK + 1 + CHECK + KEY_ID + NONCE + 16;

const CHECK: usize = 8;
const KEY_ID: usize = 8;
const NONCE: usize = 24;
const LEVEL: i32 = 3;

/// Bit 0: packed with zstd. Bit 4: encrypted.
const AS_IS: u8 = 0x40;
const PACKED: u8 = 0x41;
const SECRET_AS_IS: u8 = 0x50;
const SECRET_PACKED: u8 = 0x51;

/// Names, seals and opens chunks. Cheap to clone.
#[derive(Clone)]
pub struct Sealer {
    /// Keys, the current one first. Empty: no encryption.
    keys: Arc<[Key]>,
}

/// Reason for rejecting stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    #[error("{0}")]
    Damaged(&'static str),
    #[error("it is encrypted with the key {key}, which is not configured here")]
    WrongKey { key: String },
}

impl Sealer {
    pub fn plain() -> Self {
        Self {
            keys: Arc::from([]),
        }
    }

    /// Seals with the current key. Opens chunks sealed with an older key or without one.
    pub fn with_keys(current: &[u8; 32], older: &[[u8; 32]]) -> Self {
        Self {
            keys: std::iter::once(current)
                .chain(older)
                .map(Key::new)
                .collect(),
        }
    }

    /// Returns the id of the current key. `None`: no encryption.
    pub fn key_id(&self) -> Option<String> {
        self.keys.first().map(|key| hex(&key.id))
    }

    /// Returns the name of a chunk. Without the key, a name reveals nothing about the content.
    pub fn name(&self, plain: &[u8]) -> [u8; 32] {
        name(self.keys.first(), plain)
    }

    /// Returns the bytes to store. The same chunk and key give the same bytes, so writing twice is
    /// harmless.
    pub fn seal(&self, plain: &[u8]) -> Vec<u8> {
        let packed = pack(plain);
        let (form, body) = match &packed {
            Some(packed) => (PACKED, packed.as_slice()),
            None => (AS_IS, plain),
        };
        match self.keys.first() {
            None => framed(form, &[body]),
            Some(key) => {
                let form = form | SECRET_AS_IS;
                let name = key.name(plain);
                let nonce = key.nonce(form, &name, body);
                framed(
                    form,
                    &[&key.id, &nonce, &key.encrypt(form, &name, &nonce, body)],
                )
            }
        }
    }

    /// Returns the chunk with that name and length, or the reason why these bytes are not it.
    pub fn open(
        &self,
        expected: &[u8; 32],
        length: u32,
        sealed: &[u8],
    ) -> Result<Vec<u8>, Unsealed> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > LONGEST_CHUNK {
            return Err(Unsealed::Damaged(
                "it claims to be longer than any chunk is",
            ));
        }
        if sealed.len() > LONGEST_SEALED {
            return Err(Unsealed::Damaged("it is longer than any chunk is"));
        }
        let Some((&form, rest)) = sealed.split_first() else {
            return Err(Unsealed::Damaged("it is empty"));
        };
        let Some((check, rest)) = rest.split_at_checked(CHECK) else {
            return Err(Unsealed::Damaged("it is cut off"));
        };
        if check != check_of(form, &[rest]) {
            return Err(Unsealed::Damaged(
                "its bytes changed after they were written",
            ));
        }
        let (key, plain) = match form {
            AS_IS => (None, rest.to_vec()),
            PACKED => (None, unpack(rest, length)?),
            SECRET_AS_IS | SECRET_PACKED => {
                let (key, body) = self.decrypt(form, expected, rest)?;
                let plain = if form == SECRET_PACKED {
                    unpack(&body, length)?
                } else {
                    body
                };
                (Some(key), plain)
            }
            _ => {
                return Err(Unsealed::Damaged(
                    "it is stored in a form this rejoin does not know",
                ));
            }
        };
        if plain.len() != length {
            return Err(Unsealed::Damaged("it has another length than was kept"));
        }
        if name(key, &plain) != *expected {
            return Err(Unsealed::Damaged("it is another chunk than its name says"));
        }
        Ok(plain)
    }

    fn decrypt(&self, form: u8, name: &[u8; 32], rest: &[u8]) -> Result<(&Key, Vec<u8>), Unsealed> {
        let cut = || Unsealed::Damaged("it is cut off");
        let (id, rest) = rest.split_first_chunk::<KEY_ID>().ok_or_else(cut)?;
        let (nonce, secret) = rest.split_first_chunk::<NONCE>().ok_or_else(cut)?;
        let Some(key) = self.keys.iter().find(|key| key.id == *id) else {
            return Err(Unsealed::WrongKey { key: hex(id) });
        };
        let aad = associated(form, name);
        let payload = Payload {
            msg: secret,
            aad: &aad,
        };
        let body = key.cipher.decrypt(&XNonce::from(*nonce), payload);
        let body =
            body.map_err(|_| Unsealed::Damaged("it was not sealed by us under this name"))?;
        Ok((key, body))
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("key", &self.key_id())
            .finish_non_exhaustive()
    }
}

/// Keys derived from the user's key, one per use.
struct Key {
    id: [u8; KEY_ID],
    names: [u8; 32],
    nonces: [u8; 32],
    cipher: XChaCha20Poly1305,
}

impl Key {
    fn new(given: &[u8; 32]) -> Self {
        let derive = |of| blake3::derive_key(of, given);
        let mut id = [0; KEY_ID];
        id.copy_from_slice(&derive("rejoin 2026 chunks: which key")[..KEY_ID]);
        Self {
            id,
            names: derive("rejoin 2026 chunks: names"),
            nonces: derive("rejoin 2026 chunks: nonces"),
            cipher: XChaCha20Poly1305::new(&derive("rejoin 2026 chunks: bytes").into()),
        }
    }

    fn name(&self, plain: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.names, plain).as_bytes()
    }

    /// Returns a nonce that depends on everything encrypted under it. So no two messages share one,
    /// and no random number is needed.
    fn nonce(&self, form: u8, name: &[u8; 32], body: &[u8]) -> [u8; NONCE] {
        let mut hash = blake3::Hasher::new_keyed(&self.nonces);
        hash.update(&associated(form, name)).update(body);
        let mut nonce = [0; NONCE];
        hash.finalize_xof().fill(&mut nonce);
        nonce
    }

    fn encrypt(&self, form: u8, name: &[u8; 32], nonce: &[u8; NONCE], body: &[u8]) -> Vec<u8> {
        let aad = associated(form, name);
        let payload = Payload {
            msg: body,
            aad: &aad,
        };
        let secret = self.cipher.encrypt(&XNonce::from(*nonce), payload);
        // Fails only for more than 256 GiB. An empty result opens as damaged, never as text.
        secret.unwrap_or_default()
    }
}

/// Returns the associated data of a ciphertext. Under another name it does not open.
fn associated(form: u8, name: &[u8; 32]) -> [u8; 33] {
    let mut aad = [form; 33];
    aad[1..].copy_from_slice(name);
    aad
}

fn name(key: Option<&Key>, plain: &[u8]) -> [u8; 32] {
    key.map_or_else(|| *blake3::hash(plain).as_bytes(), |key| key.name(plain))
}

fn check_of(form: u8, rest: &[&[u8]]) -> [u8; CHECK] {
    let mut hash = blake3::Hasher::new();
    hash.update(&[form]);
    for part in rest {
        hash.update(part);
    }
    let mut check = [0; CHECK];
    hash.finalize_xof().fill(&mut check);
    check
}

fn framed(form: u8, rest: &[&[u8]]) -> Vec<u8> {
    let length = rest.iter().map(|part| part.len()).sum::<usize>();
    let mut sealed = Vec::with_capacity(1 + CHECK + length);
    sealed.push(form);
    sealed.extend(check_of(form, rest));
    for part in rest {
        sealed.extend_from_slice(part);
    }
    sealed
}

/// Packs a chunk. `None` if the result is not smaller or the packer fails; then the chunk is stored
/// as it is.
fn pack(plain: &[u8]) -> Option<Vec<u8>> {
    type Packer = zstd::bulk::Compressor<'static>;
    thread_local! {
        /// Creating a packer costs more than packing a chunk.
        static PACKER: RefCell<Option<Packer>> = RefCell::new(Packer::new(LEVEL).ok());
    }
    let packed = PACKER.with_borrow_mut(|packer| packer.as_mut()?.compress(plain).ok());
    packed.filter(|packed| packed.len() < plain.len())
}

/// Unpacks at most `length` bytes, regardless of the size that the frame claims.
fn unpack(packed: &[u8], length: usize) -> Result<Vec<u8>, Unsealed> {
    type Unpacker = zstd::bulk::Decompressor<'static>;
    thread_local! {
        static UNPACKER: RefCell<Option<Unpacker>> = RefCell::new(Unpacker::new().ok());
    }
    let plain =
        UNPACKER.with_borrow_mut(|unpacker| Some(unpacker.as_mut()?.decompress(packed, length)));
    match plain {
        Some(Ok(plain)) => Ok(plain),
        Some(Err(_)) => Err(Unsealed::Damaged("it does not unpack to what was kept")),
        None => Err(Unsealed::Damaged("there is no memory to unpack it")),
    }
}

#[cfg(test)]
mod tests;

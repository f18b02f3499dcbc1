//! Conversations as files: archives read from anywhere, bundles that a container carries along.

mod atomic_file;
mod bundle;
mod download;
mod envelope;
mod inspect;
mod temp_copy;

pub(crate) use atomic_file::AtomicFile;
pub(crate) use bundle::Bundle;
pub(crate) use envelope::{Envelope, EnvelopeWriter, Unpacked, damaged};
pub(crate) use inspect::BundleReader;
pub(crate) use temp_copy::seekable;

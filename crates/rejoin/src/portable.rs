//! Conversations as files: archives read from anywhere, bundles that a container carries along.

mod bundle;
mod download;
mod envelope;
mod glance;
mod spool;
mod whole;

pub(crate) use bundle::{Bundle, Wait};
pub(crate) use envelope::{Envelope, EnvelopeWriter, Unpacked, damaged};
pub(crate) use glance::Glance;
pub(crate) use spool::seekable;
pub(crate) use whole::WholeFile;

//! A session on this disk, however its CLI keeps it: found, compared, read, taken back.

use std::io;
use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Place, Reading, Records, SessionAt};
use rejoin_core::{FileMark, SessionFact, SessionId};

use crate::foreign_file;
use crate::fork::private;
use crate::marks;

mod apart;
pub(crate) mod database;

/// The sessions of one CLI beneath its home.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub adapter: &'static dyn Adapter,
    pub home: &'a Path,
}

impl Sessions<'_> {
    /// Where it lies, beneath the home; none: nowhere, as far as can be seen. Derived anew every
    /// time: what was recorded is evidence, never input.
    pub fn locate(&self, at: &SessionAt<'_>) -> Option<String> {
        if !self.adapter.is_session_id(at.session) {
            return None;
        }
        match self.adapter.place(at) {
            Place::At(path) => self.home.join(&path).exists().then_some(path),
            Place::Find {
                folders,
                begins,
                ends,
            } => folders
                .iter()
                .find_map(|folder| find(self.home, folder, &begins, &ends)),
        }
    }

    pub fn is_database(&self) -> bool {
        matches!(self.adapter.records(), Records::Database { .. })
    }

    /// Compares with what was confirmed. Reads only what it must.
    pub fn compare(&self, mark: &FileMark) -> SessionFact {
        match self.adapter.records() {
            Records::Lines => marks::compare(self.home, mark),
            Records::Database { .. } => database::compare(self.home, mark),
        }
    }

    /// The same of the confirmed bytes alone: whoever goes on with it adds to a file of lines behind
    /// them, and to a database in its log.
    pub fn confirmed(&self, mark: &FileMark) -> SessionFact {
        match (self.adapter.records(), marks::compare(self.home, mark)) {
            (Records::Lines, SessionFact::Changed) => SessionFact::Verified,
            (_, fact) => fact,
        }
    }

    /// Copies those bytes. Fails if they are not there.
    pub fn copy_confirmed(&self, mark: &FileMark, to: &Path) -> io::Result<()> {
        marks::copy_confirmed(self.home, mark, private(to)?)?;
        let grown = fs_err::metadata(self.home.join(&mark.path))?.len() > mark.length;
        match self.adapter.records() {
            Records::Database { .. } if grown => {
                let text = "it is still being written";
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            Records::Lines | Records::Database { .. } => Ok(()),
        }
    }

    /// Leaves nothing in a database but this session.
    pub fn leave_alone(
        &self,
        path: &str,
        statements: &[&'static str],
        session: &SessionId,
    ) -> io::Result<()> {
        let file = self.home.join(path);
        database::rewrite(&file, statements, session.as_str()).map(drop)
    }

    /// Reads what was added since `before`, and marks the whole. Fails if what was there has
    /// changed in a way that cannot be told from damage.
    pub fn read_on(
        &self,
        path: &str,
        before: Option<&FileMark>,
        cursor: Option<&str>,
    ) -> io::Result<(FileMark, Reading)> {
        let mut reader = self.adapter.reader(cursor);
        let mark = match self.adapter.records() {
            Records::Lines => marks::read_on(self.home, path, before, |line| reader.line(line))?,
            Records::Database { lines, .. } => {
                let file = self.home.join(path);
                database::rows(&file, lines, cursor, |row| reader.line(row))?;
                database::mark(self.home, path)?
            }
        };
        Ok((mark, reader.finish()))
    }

    /// Before a run: what cannot be cut back is copied.
    pub fn save(&self, mark: &FileMark, run: &Path) -> io::Result<()> {
        match self.adapter.records() {
            Records::Lines => Ok(()),
            Records::Database { .. } => database::save(self.home, mark, &saved(run)),
        }
    }

    /// Removes files under the name of a session that hold nothing: a CLI that finds its sessions by
    /// name may leave one with every run, and they would be taken for it once it is gone.
    /// `path`: the session itself, if there is one.
    pub fn tidy(&self, at: &SessionAt<'_>, path: Option<&str>) {
        let Place::Find {
            folders,
            begins,
            ends,
        } = self.adapter.place(at)
        else {
            return;
        };
        if !self.adapter.leaves_stubs() {
            return;
        }
        let file = path.map(|path| self.home.join(path));
        let beside = file
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_path_buf);
        let usual = || folders.first().map(|folder| self.home.join(folder));
        let Some(folder) = beside.or_else(usual) else {
            return;
        };
        for other in named(&folder, &begins, &ends) {
            let other = folder.join(other);
            let is_it = file.as_ref() == Some(&other);
            let Some(bytes) = foreign_file::read_setting(&other).filter(|_| !is_it) else {
                continue;
            };
            let mut reader = self.adapter.reader(None);
            for line in bytes.split(|b| *b == b'\n') {
                reader.line(line);
            }
            let reading = reader.finish();
            if reading.entries.is_empty() && reading.prompts.is_empty() {
                let _gone = fs_err::remove_file(&other);
            }
        }
    }

    /// Adds what makes its CLI replay each thing once.
    pub fn mend(&self, path: &str) -> io::Result<()> {
        let file = self.home.join(path);
        if let Some(more) = self
            .adapter
            .mend(&foreign_file::read_regular(&file, foreign_file::SESSION)?)
        {
            let mut options = fs_err::OpenOptions::new();
            let mut file = foreign_file::open_to_change(&file, options.append(true))?;
            io::Write::write_all(&mut file, &more)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Takes a session back to its confirmed bytes. Fails, changing nothing, if they are not there.
    pub fn cut_back(&self, mark: &FileMark, run: &Path) -> io::Result<FileMark> {
        match self.adapter.records() {
            Records::Lines => marks::cut_back(self.home, mark),
            Records::Database { .. } => database::put_back(self.home, mark, &saved(run)),
        }
    }

    /// Does to a session what must be done before its CLI goes on with it (some take what lies in the
    /// future for their newest message). Now is in milliseconds since 1970.
    pub fn make_ready(&self, mark: FileMark, now: i64) -> io::Result<FileMark> {
        let Records::Database { ready, .. } = self.adapter.records() else {
            return Ok(mark);
        };
        let path = self.home.join(&mark.path);
        match database::rewrite(&path, ready, &now.to_string())? {
            0 => Ok(mark),
            _ => database::mark(self.home, &mark.path),
        }
    }

    /// Tells a session that says itself where it belongs that this is its folder.
    pub fn rewrite(
        &self,
        mark: FileMark,
        statements: &[&'static str],
        folder: &str,
    ) -> io::Result<FileMark> {
        let path = self.home.join(&mark.path);
        match database::rewrite(&path, statements, folder)? {
            0 => Ok(mark),
            _ => database::mark(self.home, &mark.path),
        }
    }
}

pub(crate) fn saved(run: &Path) -> PathBuf {
    run.join("session.saved")
}

/// The first file by name in a folder, of which parts may be `*`.
fn find(home: &Path, folder: &str, begins: &str, ends: &str) -> Option<String> {
    folders(home, folder).into_iter().find_map(|folder| {
        let name = named(&home.join(&folder), begins, ends)
            .into_iter()
            .next()?;
        Some(format!("{folder}/{name}"))
    })
}

/// The folders beneath a home that are meant by one of which parts may be `*`.
pub(crate) fn folders(home: &Path, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once("/*") else {
        return vec![pattern.to_owned()];
    };
    let names = named(&home.join(before), "", "").into_iter();
    names
        .flat_map(|name| folders(home, &format!("{before}/{name}{after}")))
        .collect()
}

/// The names in a folder that begin and end so, in order.
pub(crate) fn named(folder: &Path, begins: &str, ends: &str) -> Vec<String> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let is_it = |name: &String| {
        name.len() >= begins.len() + ends.len() && name.starts_with(begins) && name.ends_with(ends)
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(is_it)
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn found_by_the_ends_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "a/x/c/s-1-id.l",
            "a/y/c/s-2-id.l",
            "a/y/c/s-3-id.l",
            "a/y/d/s-id.l",
        ] {
            let path = dir.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        }
        let found = |folder, begins, ends| find(dir.path(), folder, begins, ends);
        assert_eq!(found("a/y/c", "s-", "-id.l").unwrap(), "a/y/c/s-2-id.l");
        assert_eq!(found("a/*/c", "s-", "-id.l").unwrap(), "a/x/c/s-1-id.l");
        assert_eq!(found("a/*/c", "s-3", "-id.l").unwrap(), "a/y/c/s-3-id.l");
        assert_eq!(found("a/y/*", "s-3", "-id.l").unwrap(), "a/y/c/s-3-id.l");
        assert_eq!(found("a/*/*", "s-3", "-id.l").unwrap(), "a/y/c/s-3-id.l");
        // Beginning and end do not overlap.
        assert_eq!(found("a/y/d", "s-", "-id.l"), None);
        assert_eq!(found("a/z/c", "s-", "-id.l"), None);
    }
}

//! Session on this disk, in any format that its CLI uses: finds, compares, reads and cuts it back.

use std::io;
use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Reading, Records, SessionAt, SessionPath};
use rejoin_core::{FileMark, SessionFact, SessionId};

use crate::foreign_file;
use crate::fork::private;
use crate::marks;
use checked::Checked;

pub(crate) mod checked;
pub(crate) mod database;
mod worker;

/// Sessions of one CLI below its home.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub adapter: &'static dyn Adapter,
    pub home: &'a Path,
}

impl Sessions<'_> {
    /// Returns the path of the session below the home, or None if it is not found. The path is
    /// derived again every time: a recorded path is only a hint, never an input.
    pub fn locate(&self, at: &SessionAt<'_>) -> Option<String> {
        if !self.adapter.is_session_id(at.session) {
            return None;
        }
        match self.adapter.place(at) {
            SessionPath::At(path) => self.home.join(&path).exists().then_some(path),
            SessionPath::Find {
                folders,
                begins,
                ends,
                ..
            } => folders
                .iter()
                .find_map(|folder| find(self.home, folder, &begins, &ends)),
        }
    }

    pub fn is_database(&self) -> bool {
        matches!(self.adapter.profile().records, Records::Database { .. })
    }

    /// Compares the session with its confirmed mark. Reads only the bytes that it must.
    pub fn compare(&self, mark: &FileMark) -> SessionFact {
        match self.adapter.profile().records {
            Records::Lines => marks::compare(self.home, mark),
            Records::Database { .. } => database::compare(self.home, mark),
        }
    }

    /// Compares only the confirmed bytes with the mark: a process that continues the session adds
    /// to a file of lines after them, and to a database in its log.
    pub fn confirmed(&self, mark: &FileMark) -> SessionFact {
        match (
            self.adapter.profile().records,
            marks::compare(self.home, mark),
        ) {
            (Records::Lines, SessionFact::Changed) => SessionFact::Verified,
            (_, fact) => fact,
        }
    }

    /// Copies the confirmed bytes. Fails if they are not there.
    pub fn copy_confirmed(&self, mark: &FileMark, to: &Path) -> io::Result<()> {
        marks::copy_confirmed(self.home, mark, private(to)?)?;
        let grown = fs_err::metadata(self.home.join(&mark.path))?.len() > mark.length;
        match self.adapter.profile().records {
            Records::Database { .. } if grown => {
                let text = "it is still being written";
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            Records::Lines | Records::Database { .. } => Ok(()),
        }
    }

    /// Removes everything but this session from a database.
    pub fn leave_alone(
        &self,
        path: &str,
        statements: &[&'static str],
        session: &SessionId,
    ) -> io::Result<()> {
        let file = self.home.join(path);
        database::rewrite(&file, &[], statements, session.as_str()).map(drop)
    }

    /// Reads the entries that were added since `before`, and marks the whole session. Fails if the
    /// content before has changed in a way that cannot be told from damage.
    pub fn read_on(
        &self,
        path: &str,
        before: Option<&FileMark>,
        cursor: Option<&str>,
    ) -> io::Result<(FileMark, Reading)> {
        let mut reader = Checked::new(self.adapter, cursor);
        let mark = match self.adapter.profile().records {
            Records::Lines => marks::read_on(self.home, path, before, |line| reader.line(line))?,
            Records::Database { lines, .. } => {
                let file = self.home.join(path);
                database::rows(&file, lines, cursor, |row| reader.line(row))?;
                database::mark(self.home, path)?
            }
        };
        Ok((mark, reader.finish()))
    }

    /// Saves a copy before a run, if the session cannot be cut back otherwise.
    pub fn save(&self, mark: &FileMark, run: &Path) -> io::Result<()> {
        match self.adapter.profile().records {
            Records::Lines => Ok(()),
            Records::Database { .. } => database::save(self.home, mark, &saved(run)),
        }
    }

    /// Removes empty files under the name of a session: a CLI that finds its sessions by name may
    /// leave one with every run, and they would be taken for the session once it is gone. `path` is
    /// the session itself, if there is one.
    pub fn tidy(&self, at: &SessionAt<'_>, path: Option<&str>) {
        let SessionPath::Find {
            folders,
            begins,
            ends,
            ..
        } = self.adapter.place(at)
        else {
            return;
        };
        if self.adapter.capabilities().repair.is_none() {
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

    /// Appends lines that make the CLI replay every entry once.
    pub fn repair(&self, path: &str) -> io::Result<()> {
        let Some(repair) = self.adapter.capabilities().repair else {
            return Ok(());
        };
        let file = self.home.join(path);
        let session = foreign_file::read_regular(&file, foreign_file::SESSION)?;
        if let Some(more) = repair.repair(&session) {
            let mut options = fs_err::OpenOptions::new();
            let mut file = foreign_file::open_to_change(&file, options.append(true))?;
            io::Write::write_all(&mut file, &more)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Cuts a session back to its confirmed bytes. Fails, changing nothing, if they are not there.
    pub fn cut_back(&self, mark: &FileMark, run: &Path) -> io::Result<FileMark> {
        match self.adapter.profile().records {
            Records::Lines => marks::cut_back(self.home, mark),
            Records::Database { .. } => database::put_back(self.home, mark, &saved(run)),
        }
    }

    /// Prepares a session for its CLI (some take a message with a time in the future for the newest
    /// one). `now` is in milliseconds since 1970.
    pub fn make_ready(&self, mark: FileMark, now: i64) -> io::Result<FileMark> {
        let Records::Database { ready, foreign, .. } = self.adapter.profile().records else {
            return Ok(mark);
        };
        let path = self.home.join(&mark.path);
        match database::rewrite(&path, foreign, ready, &now.to_string())? {
            0 => Ok(mark),
            _ => database::mark(self.home, &mark.path),
        }
    }

    /// Records the folder in a session that names its own folder.
    pub fn rewrite(
        &self,
        mark: FileMark,
        statements: &[&'static str],
        folder: &str,
    ) -> io::Result<FileMark> {
        let path = self.home.join(&mark.path);
        match database::rewrite(&path, &[], statements, folder)? {
            0 => Ok(mark),
            _ => database::mark(self.home, &mark.path),
        }
    }
}

pub(crate) fn saved(run: &Path) -> PathBuf {
    run.join("session.saved")
}

/// Returns the first file by name in a folder, whose path may contain `*`.
fn find(home: &Path, folder: &str, begins: &str, ends: &str) -> Option<String> {
    folders(home, folder).into_iter().find_map(|folder| {
        let name = named(&home.join(&folder), begins, ends)
            .into_iter()
            .next()?;
        Some(format!("{folder}/{name}"))
    })
}

/// Returns the folders below a home that match a pattern, in which `*` stands for one name.
pub(crate) fn folders(home: &Path, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once("/*") else {
        return vec![pattern.to_owned()];
    };
    let names = named(&home.join(before), "", "").into_iter();
    names
        .flat_map(|name| folders(home, &format!("{before}/{name}{after}")))
        .collect()
}

/// Returns the names in a folder with this beginning and end, sorted.
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
        // Beginning and end must not overlap.
        assert_eq!(found("a/y/d", "s-", "-id.l"), None);
        assert_eq!(found("a/z/c", "s-", "-id.l"), None);
    }
}

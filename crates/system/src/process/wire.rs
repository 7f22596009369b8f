//! What Haft and a guard say to each other over their socket pair. Both ends are the same program, so there is no version.
//!
//! Haft → guard: one [`Request`] (with the program's stdin, stdout, stderr and perhaps its
//! channel attached to its first byte), then [`Order`]s.
//! Guard → Haft: one [`Report::Started`] or [`Report::Failed`], then one [`Report::Ended`].

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

/// Larger than what `execve` takes on Linux (`ARG_MAX` is at most 6 MiB for arguments and environment), so that the kernel's own
/// answer, not this limit, is what a caller hears.
pub(super) const LARGEST_MESSAGE: usize = 16 << 20;

/// What a guard is to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) program: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// `NAME=value`, complete: the guard adds nothing of its own.
    pub(super) environment: Vec<OsString>,
    pub(super) grace_ms: u32,
}

/// What a guard is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Send a signal to the program's process group.
    Signal(i32),
    /// End everything: TERM now, KILL after so many milliseconds.
    Terminate(u32),
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Code(i32),
    Signal(i32),
}

/// The step at which a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Setup,
    Directory,
    Exec,
}

/// What a guard tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Started(i32),
    Failed {
        stage: Stage,
        errno: i32,
    },
    /// Nothing of the program is left, but for what is named in `survivors`.
    Ended {
        /// Unknown only where the program itself could not be killed.
        status: Option<Status>,
        /// What the program had left running when it ended by itself, and what was then killed.
        leftovers: Vec<String>,
        /// What could not be killed.
        survivors: Vec<String>,
    },
}

impl Request {
    /// The message with its length in front.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_u32(&mut body, self.grace_ms);
        put_bytes(&mut body, self.program.as_os_str().as_bytes());
        put_bytes(&mut body, self.directory.as_os_str().as_bytes());
        for list in [&self.arguments, &self.environment] {
            put_u32(&mut body, list.len() as u32);
            for item in list {
                put_bytes(&mut body, item.as_bytes());
            }
        }
        framed(&body)
    }

    /// Reads what is behind the length.
    pub(super) fn decode(body: &[u8]) -> io::Result<Self> {
        let mut rest = body;
        let grace_ms = take_u32(&mut rest)?;
        let program = PathBuf::from(OsStr::from_bytes(take_bytes(&mut rest)?));
        let directory = PathBuf::from(OsStr::from_bytes(take_bytes(&mut rest)?));
        let arguments = take_list(&mut rest)?;
        let environment = take_list(&mut rest)?;
        Ok(Request { program, directory, arguments, environment, grace_ms })
    }
}

impl Order {
    /// Every order has this length.
    pub(super) const LENGTH: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let (tag, value) = match self {
            Order::Signal(number) => (b'S', number.to_le_bytes()),
            Order::Terminate(grace_ms) => (b'T', grace_ms.to_le_bytes()),
        };
        [tag, value[0], value[1], value[2], value[3]]
    }

    pub(super) fn decode(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        let [tag, value @ ..] = bytes;
        match tag {
            b'S' => Some(Order::Signal(i32::from_le_bytes(value))),
            b'T' => Some(Order::Terminate(u32::from_le_bytes(value))),
            _ => None,
        }
    }
}

impl Report {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Report::Started(pid) => {
                body.push(b'+');
                put_u32(&mut body, pid.cast_unsigned());
            }
            Report::Failed { stage, errno } => {
                body.push(b'-');
                body.push(match stage {
                    Stage::Setup => 0,
                    Stage::Directory => 1,
                    Stage::Exec => 2,
                });
                put_u32(&mut body, errno.cast_unsigned());
            }
            Report::Ended { status, leftovers, survivors } => {
                body.push(b'.');
                let (kind, value) = match status {
                    None => (0, 0),
                    Some(Status::Code(code)) => (1, *code),
                    Some(Status::Signal(signal)) => (2, *signal),
                };
                body.push(kind);
                put_u32(&mut body, value.cast_unsigned());
                for list in [leftovers, survivors] {
                    put_u32(&mut body, list.len() as u32);
                    for item in list {
                        put_bytes(&mut body, item.as_bytes());
                    }
                }
            }
        }
        framed(&body)
    }

    pub(super) fn decode(body: &[u8]) -> io::Result<Self> {
        let (tag, mut rest) = body.split_first().ok_or_else(broken)?;
        match tag {
            b'+' => Ok(Report::Started(take_u32(&mut rest)?.cast_signed())),
            b'-' => {
                let (stage, mut rest) = rest.split_first().ok_or_else(broken)?;
                let stage = match stage {
                    0 => Stage::Setup,
                    1 => Stage::Directory,
                    2 => Stage::Exec,
                    _ => return Err(broken()),
                };
                Ok(Report::Failed { stage, errno: take_u32(&mut rest)?.cast_signed() })
            }
            b'.' => {
                let (kind, mut rest) = rest.split_first().ok_or_else(broken)?;
                let value = take_u32(&mut rest)?.cast_signed();
                let status = match kind {
                    0 => None,
                    1 => Some(Status::Code(value)),
                    2 => Some(Status::Signal(value)),
                    _ => return Err(broken()),
                };
                let mut strings = || -> io::Result<Vec<String>> {
                    Ok(take_list(&mut rest)?
                        .into_iter()
                        .map(|item| item.to_string_lossy().into_owned())
                        .collect())
                };
                let leftovers = strings()?;
                let survivors = strings()?;
                Ok(Report::Ended { status, leftovers, survivors })
            }
            _ => Err(broken()),
        }
    }
}

/// The length of a message from its first four bytes.
pub(super) fn length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > LARGEST_MESSAGE { Err(broken()) } else { Ok(length) }
}

/// Reads one message without its length. An end of input before it is complete is an error.
pub(super) fn read_message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix)?;
    let mut body = vec![0; length(prefix)?];
    from.read_exact(&mut body)?;
    Ok(body)
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(body.len() + 4);
    put_bytes(&mut message, body);
    message
}

fn put_u32(into: &mut Vec<u8>, value: u32) {
    into.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(into, bytes.len() as u32);
    into.extend_from_slice(bytes);
}

fn take_u32(from: &mut &[u8]) -> io::Result<u32> {
    let (value, rest) = from.split_first_chunk::<4>().ok_or_else(broken)?;
    *from = rest;
    Ok(u32::from_le_bytes(*value))
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = take_u32(from)? as usize;
    let (bytes, rest) = from.split_at_checked(length).ok_or_else(broken)?;
    *from = rest;
    Ok(bytes)
}

fn take_list(from: &mut &[u8]) -> io::Result<Vec<OsString>> {
    let count = take_u32(from)?;
    (0..count).map(|_| Ok(OsString::from_vec(take_bytes(from)?.to_vec()))).collect()
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message between Haft and a guard is broken")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in() {
        let request = Request {
            program: "/bin/sh".into(),
            directory: OsString::from_vec(b"/odd\xff".to_vec()).into(),
            arguments: vec!["-c".into(), "".into(), "echo 'a\nb'".into()],
            environment: vec!["A=1".into(), OsString::from_vec(b"B=\xfe".to_vec())],
            grace_ms: 2000,
        };
        let encoded = request.encode();
        assert_eq!(Request::decode(&read_message(&mut encoded.as_slice()).unwrap()).unwrap(), request);

        for order in [Order::Signal(9), Order::Terminate(0), Order::Terminate(u32::MAX)] {
            assert_eq!(Order::decode(order.encode()), Some(order));
        }

        let reports = [
            Report::Started(4711),
            Report::Failed { stage: Stage::Exec, errno: 2 },
            Report::Ended {
                status: Some(Status::Code(-1)),
                leftovers: vec!["7 sleep 5".into()],
                survivors: vec![],
            },
            Report::Ended { status: None, leftovers: vec![], survivors: vec!["8 sudo".into()] },
        ];
        for report in reports {
            let encoded = report.encode();
            assert_eq!(Report::decode(&read_message(&mut encoded.as_slice()).unwrap()).unwrap(), report);
        }
    }

    #[test]
    fn a_cut_message_is_an_error_and_not_a_panic() {
        let report = Report::Ended {
            status: Some(Status::Signal(9)),
            leftovers: vec!["x".into()],
            survivors: vec!["y".into()],
        };
        let body = report.encode()[4..].to_vec();
        for end in 0..body.len() {
            assert!(Report::decode(&body[..end]).is_err(), "cut at {end}");
        }
    }
}

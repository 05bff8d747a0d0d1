// SPDX-License-Identifier: GPL-2.0
//! A wire that ends at another emulator: a Unix socket. The emulator that
//! comes first listens, the other connects.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use crate::machine::Shared;
use crate::wire::{is_frame, Message, MESSAGE_HEAD};

/// Frames that may wait for the socket; with a peer that takes none, more are
/// refused.
const FRAMES_WAITING: usize = 4096;

/// A writer that hands messages to the thread that owns the socket, so that
/// nobody waits for a slow peer with the machine locked.
///
/// The channel itself has no bound, since a change of the link, of which there
/// are few, must not get lost; frames are counted.
#[derive(Clone)]
struct Outgoing {
    sender: Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

impl Outgoing {
    fn new() -> (Self, Receiver<Vec<u8>>) {
        let (sender, receiver) = channel();
        let waiting = Arc::default();
        (Outgoing { sender, waiting }, receiver)
    }
}

impl Write for Outgoing {
    fn write(&mut self, message: &[u8]) -> std::io::Result<usize> {
        if is_frame(message) {
            if self.waiting.load(Ordering::Relaxed) >= FRAMES_WAITING {
                return Err(std::io::ErrorKind::WouldBlock.into());
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        self.sender
            .send(message.to_vec())
            .map_err(|_| std::io::ErrorKind::BrokenPipe)?;
        Ok(message.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The socket to the other emulator, not yet in use.
pub struct Remote {
    stream: UnixStream,
    outgoing: Outgoing,
}

impl Remote {
    /// Connects to the emulator that listens at `path`, or listens there and
    /// waits for the other one.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(_) => {
                let _ = std::fs::remove_file(path);
                UnixListener::bind(path)?.accept()?.0
            }
        };
        let (outgoing, receiver) = Outgoing::new();
        let waiting = outgoing.waiting.clone();
        let mut out = stream.try_clone()?;
        std::thread::spawn(move || {
            for message in receiver {
                if out.write_all(&message).is_err() {
                    return;
                }
                if is_frame(&message) {
                    waiting.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Remote { stream, outgoing })
    }

    /// Returns a writer of messages.
    pub fn writer(&self) -> Box<dyn Write + Send> {
        Box::new(self.outgoing.clone())
    }

    /// Hands what arrives to the machine, in a thread of its own.
    pub fn start(self, shared: Arc<Shared>) {
        std::thread::spawn(move || {
            let mut stream = self.stream;
            while let Some(message) = receive(&mut stream) {
                shared.with(|machine, now| machine.message(message, now));
            }
        });
    }
}

fn receive(stream: &mut UnixStream) -> Option<Message> {
    let mut head = [0; MESSAGE_HEAD];
    stream.read_exact(&mut head).ok()?;
    let mut payload = vec![0; Message::payload_len(&head)?];
    stream.read_exact(&mut payload).ok()?;
    Message::parse(&head, payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::trace::Trace;
    use crate::violations::Violations;
    use crate::wire::Wire;
    use std::time::{Duration, Instant};

    fn emulator(path: &Path) -> Arc<Shared> {
        let remote = Remote::open(path).unwrap();
        let wire = Wire::remote(1, || remote.writer());
        let machine = Machine::new(wire, Trace::off(), Violations::quiet());
        let shared = Arc::new(Shared::new(machine));
        remote.start(shared.clone());
        shared
    }

    #[test]
    fn a_peer_that_takes_nothing_loses_frames_only() {
        let (outgoing, receiver) = Outgoing::new();
        let mut wire = Wire::remote(1, || Box::new(outgoing.clone()));
        let sent = FRAMES_WAITING + 5;
        (0..sent).for_each(|_| wire.send(0, vec![1; 60], 0));
        assert_eq!(wire.counts(0).unwrap().lost, 5);
        wire.set_link(0, false);
        assert_eq!(receiver.try_iter().count(), FRAMES_WAITING + 1);
    }

    #[test]
    fn frames_cross() {
        let name = format!("irdma-emulator-wire-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let first = std::thread::spawn({
            let path = path.clone();
            move || emulator(&path)
        });
        let start = Instant::now();
        while !path.exists() && start.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        let second = emulator(&path);
        let first = first.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        first.with(|machine, now| machine.wire().send(0, vec![1; 60], now));
        let arrived = || second.with(|machine, _| machine.wire().counts(0).unwrap().delivered);
        while arrived() == 0 && start.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert_eq!(arrived(), 1);
    }
}

//! Requests as a server reads them.
//!
//! In: a connection. Out: one request with its body, as it came and unpacked.

use std::io::Read;

use flate2::read::GzDecoder;

/// A request whose body is packed.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    /// Bytes of the request's line and its headers, without the empty line.
    head: usize,
}

/// Ends the headers.
const END: &[u8] = b"\r\n\r\n";

impl Request {
    /// The request that comes; none if it ends early.
    pub(crate) fn read(stream: &mut impl Read) -> Option<Self> {
        let mut bytes = Vec::new();
        let mut block = [0; 4096];
        loop {
            let head = bytes.windows(END.len()).position(|four: &[u8]| four == END);
            if let Some(head) = head {
                let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
                let length = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                let end = head + END.len() + length?.parse::<usize>().ok()?;
                if bytes.len() >= end {
                    bytes.truncate(end);
                    return Some(Self { bytes, head });
                }
            }
            match stream.read(&mut block).ok()? {
                0 => return None,
                read => bytes.extend_from_slice(&block[..read]),
            }
        }
    }

    /// Its body.
    ///
    /// # Panics
    ///
    /// When that is not packed.
    pub(crate) fn unpacked(&self) -> Vec<u8> {
        let mut body = Vec::new();
        GzDecoder::new(&self.bytes[self.head + END.len()..])
            .read_to_end(&mut body)
            .expect("the body is packed");
        body
    }

    /// The same request, behind whose answer the connection ends.
    pub(crate) fn last(&self) -> Vec<u8> {
        let (head, body) = self.bytes.split_at(self.head);
        [head, b"\r\nConnection: close", body].concat()
    }
}

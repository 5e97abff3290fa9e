//! Checks of a Parquet file's pages, before the library reads them.
//!
//! In: the bytes of a file, and what its footer says of a column's part. Out: whether its pages lie where they are said to, and take no
//! more memory than is reasonable. The library believes what a page says of its size.

/// The largest page, in bytes, unpacked. Ours have a mebibyte, and dictionaries up to 32.
const PAGE_BYTES: u64 = 128 << 20;

/// The most cells of a column in one group of rows.
const CELLS: u64 = 1 << 25;

/// So much is unpacked of a file whatever its size, and beyond it so many times that.
const UNPACKED: (u64, u64) = (1 << 30, 1024);

/// How much of a file was unpacked.
pub(super) struct Checks {
    left: u64,
}

/// Where the footer says that a column's part lies.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) begin: i64,
    pub(super) bytes: i64,
}

/// The head of a page.
struct Page {
    head_bytes: usize,
    unpacked: u64,
    packed: u64,
    cells: u64,
    is_dictionary: bool,
}

impl Checks {
    /// For a file of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            left: UNPACKED.0 + UNPACKED.1 * bytes as u64,
        }
    }

    /// Checks the pages of a column's part. Returns how many cells they have, or the problem.
    pub(super) fn chunk(&mut self, file: &[u8], chunk: Chunk) -> Result<u64, &'static str> {
        let outside = "a column lies outside of the file";
        let begin = usize::try_from(chunk.begin).map_err(|_| outside)?;
        let bytes = usize::try_from(chunk.bytes).map_err(|_| outside)?;
        let end = begin.checked_add(bytes).ok_or(outside)?;
        let mut rest = file.get(begin..end).ok_or(outside)?;
        let mut cells = 0;
        while !rest.is_empty() {
            let page = page(rest).ok_or("a page has no head that can be read")?;
            if page.unpacked > PAGE_BYTES || page.unpacked > self.left {
                return Err("a page is larger than is reasonable");
            }
            self.left -= page.unpacked;
            if page.cells > CELLS {
                return Err("a page has more cells than is reasonable");
            }
            if !page.is_dictionary {
                cells += page.cells;
            }
            let page_bytes = usize::try_from(page.packed).ok();
            let page_bytes = page_bytes.and_then(|packed| packed.checked_add(page.head_bytes));
            let page_bytes = page_bytes.filter(|bytes| *bytes <= rest.len());
            rest = &rest[page_bytes.ok_or("a page ends outside of its column")?..];
        }
        match cells > CELLS {
            true => Err("a group of rows has more cells than is reasonable"),
            false => Ok(cells),
        }
    }
}

/// The head of the page that begins here.
fn page(bytes: &[u8]) -> Option<Page> {
    let mut thrift = Thrift { bytes, at: 0 };
    let (mut unpacked, mut packed, mut cells, mut is_dictionary) = (None, None, None, false);
    let mut id = 0;
    while let Some(kind) = thrift.field(&mut id)? {
        match (id, kind) {
            (2, I32) => unpacked = Some(thrift.number()?),
            (3, I32) => packed = Some(thrift.number()?),
            // Of data, of a dictionary, of data in the second version.
            (5 | 7 | 8, STRUCT) => {
                is_dictionary = id == 7;
                let mut inner = 0;
                while let Some(kind) = thrift.field(&mut inner)? {
                    match (inner, kind) {
                        (1, I32) => cells = Some(thrift.number()?),
                        _ => thrift.skip(kind, 0)?,
                    }
                }
            }
            _ => thrift.skip(kind, 0)?,
        }
    }
    let size = |number: i64| u64::try_from(number).ok();
    Some(Page {
        head_bytes: thrift.at,
        unpacked: size(unpacked?)?,
        packed: size(packed?)?,
        cells: size(cells?)?,
        is_dictionary,
    })
}

const I32: u8 = 5;
const STRUCT: u8 = 12;

/// So deep are structures nested at most.
const DEEPEST: usize = 8;

/// A reader of Thrift's compact protocol.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn number(&mut self) -> Option<i64> {
        let zigzag = self.unsigned()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        self.at = (end <= self.bytes.len()).then_some(end)?;
        Some(())
    }

    /// The type of the next field, whose ID comes to stand in `id`; none at the end of a structure.
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *id = match byte >> 4 {
            0 => self.number()?,
            more => id.checked_add(i64::from(more))?,
        };
        Some(Some(byte & 0xf))
    }

    /// Passes over a value. Heads of pages have neither lists nor maps.
    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.unsigned().map(|_| ()),
            7 => self.pass(8),
            8 => {
                let bytes = self.unsigned()?;
                self.pass(bytes)
            }
            STRUCT if depth < DEEPEST => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a page of data: so many bytes unpacked and packed, so many cells.
    fn head(unpacked: u64, packed: u64, cells: u64) -> Vec<u8> {
        let number = |number: u64| {
            let mut zigzag = number << 1;
            let mut bytes = Vec::new();
            while zigzag >= 0x80 {
                bytes.push(zigzag as u8 | 0x80);
                zigzag >>= 7;
            }
            bytes.push(zigzag as u8);
            bytes
        };
        let mut bytes = vec![0x15, 0];
        for of in [unpacked, packed] {
            bytes.push(0x15);
            bytes.extend(number(of));
        }
        bytes.extend([0x2c, 0x15]);
        bytes.extend(number(cells));
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn pages_are_measured_before_they_are_unpacked() {
        let check = |bytes: &[u8]| {
            let chunk = Chunk {
                begin: 0,
                bytes: bytes.len() as i64,
            };
            Checks::new(bytes.len()).chunk(bytes, chunk)
        };
        let with = |head: Vec<u8>, body: usize| [head, vec![7; body]].concat();
        assert_eq!(check(&with(head(100, 3, 9), 3)), Ok(9));
        let two = [with(head(100, 3, 9), 3), with(head(5, 1, 2), 1)].concat();
        assert_eq!(check(&two), Ok(11));
        for broken in [
            with(head(100, 3, 9), 2),
            with(head(1 << 30, 3, 9), 3),
            with(head(100, 3, 1 << 30), 3),
            vec![0x15, 0xff],
            vec![0; 4],
        ] {
            assert!(check(&broken).is_err(), "{broken:?}");
        }
        for (begin, bytes) in [(-1, 1), (0, -1), (0, 99), (i64::MAX, i64::MAX)] {
            let chunk = Chunk { begin, bytes };
            assert!(Checks::new(1).chunk(&two, chunk).is_err());
        }
    }
}

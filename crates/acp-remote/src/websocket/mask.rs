//! Masks client frames with random bytes (RFC 6455, 5.3).

use rustls::crypto::SecureRandom;

/// The number of random bytes to fetch at a time.
const BLOCK_SIZE: usize = 256;

/// Applies a mask to bytes. `offset` is the position of the first byte in its frame.
pub(super) fn apply_mask(bytes: &mut [u8], mask: [u8; 4], offset: usize) {
    let [a, b, c, d] = mask;
    let mask = match offset % 4 {
        0 => [a, b, c, d],
        1 => [b, c, d, a],
        2 => [c, d, a, b],
        _ => [d, a, b, c],
    };
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// A source of unpredictable masks. They keep attackers from crafting frames that look like HTTP requests to a proxy
/// (RFC 6455, 10.3).
#[derive(Debug)]
pub(super) struct MaskGenerator {
    random: &'static dyn SecureRandom,
    block: [u8; BLOCK_SIZE],
    used: usize,
}

impl MaskGenerator {
    pub(super) fn new() -> Self {
        Self {
            random: rustls::crypto::ring::default_provider().secure_random,
            block: [0; BLOCK_SIZE],
            used: BLOCK_SIZE,
        }
    }

    /// Returns the next mask, or `None` if the system cannot provide random bytes.
    pub(super) fn next(&mut self) -> Option<[u8; 4]> {
        if self.used == BLOCK_SIZE {
            self.random.fill(&mut self.block).ok()?;
            self.used = 0;
        }
        let mask = self.block.get(self.used..)?.first_chunk::<4>().copied();
        self.used += 4;
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_is_applied_from_any_offset() {
        let mask = [1, 2, 4, 8];
        let plain: Vec<u8> = (0..100).collect();
        let expected: Vec<u8> = plain
            .iter()
            .zip(mask.iter().cycle())
            .map(|(b, m)| b ^ m)
            .collect();
        for cut in 0..plain.len() {
            let mut bytes = plain.clone();
            let (first, second) = bytes.split_at_mut(cut);
            apply_mask(first, mask, 0);
            apply_mask(second, mask, cut);
            assert_eq!(bytes, expected, "{cut}");
        }
    }

    #[test]
    fn masks_do_not_repeat() {
        let mut masks = MaskGenerator::new();
        let all: std::collections::HashSet<_> = (0..1000).map(|_| masks.next().unwrap()).collect();
        assert!(all.len() > 990);
    }
}

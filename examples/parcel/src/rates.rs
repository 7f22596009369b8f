//! The rates of this year.

/// Upper limit in grams, which belongs to the band, and price in cents.
pub const BANDS: [(u32, u32); 4] = [(500, 160), (2000, 549), (5000, 749), (10_000, 1099)];

/// Cents for each kilogram, begun or whole, above the last band.
pub const HEAVY_PER_KG: u32 = 95;

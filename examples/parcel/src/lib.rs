//! What it costs to send a parcel.

pub mod rates;

use rates::{BANDS, HEAVY_PER_KG};

/// The price in cents of a parcel of `grams`.
pub fn price(grams: u32) -> u32 {
    for (limit, cents) in BANDS {
        if grams < limit {
            return cents;
        }
    }
    let (limit, cents) = BANDS[BANDS.len() - 1];
    cents + (grams - limit).div_ceil(1000) * HEAVY_PER_KG
}

#[cfg(test)]
mod tests {
    use super::price;

    #[test]
    fn a_letter_is_cheap() {
        assert_eq!(price(20), 160);
    }

    #[test]
    fn a_parcel_at_the_limit_of_its_band_is_in_it() {
        assert_eq!(price(2000), 549);
    }

    #[test]
    fn heavy_parcels_pay_by_the_kilogram() {
        assert_eq!(price(12_500), 1099 + 3 * 95);
    }
}

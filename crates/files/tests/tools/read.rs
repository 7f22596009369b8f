use std::{fs, io::Write, os::unix::fs::symlink};

use haft_tool::Content;
use image::{DynamicImage, ImageFormat, RgbaImage};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::bench::{Bench, joined};

#[tokio::test]
async fn text_comes_under_line_numbers() {
    let bench = Bench::new().with([
        ("a.txt", "one\n\ttwo\n\nfour"),
        ("crlf.txt", "one\r\ntwo\r\n"),
        ("mixed.txt", "one\r\ntwo\n"),
        ("empty.txt", ""),
        ("blank.txt", "\n"),
        ("ten.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"),
        ("sp ace/ünï\ncode.txt", "odd\n"),
    ]);
    bench.put("bom.txt", b"\xef\xbb\xbfone\n");
    bench.put("latin.txt", b"M\xfcller\n");
    bench.put("utf16.txt", b"\xff\xfeh\0i\0\n\0");
    let mut all = Vec::new();
    for arguments in [
        json!({"path": "a.txt"}),
        json!({"path": "crlf.txt"}),
        json!({"path": "mixed.txt"}),
        json!({"path": "empty.txt"}),
        json!({"path": "blank.txt"}),
        json!({"path": "ten.txt", "offset": 9}),
        json!({"path": "ten.txt", "offset": 2, "limit": 2}),
        json!({"path": "sp ace/ünï\ncode.txt"}),
        json!({"path": "bom.txt"}),
        json!({"path": "latin.txt"}),
        json!({"path": "utf16.txt"}),
    ] {
        all.push(bench.said("read", arguments).await);
    }
    insta::assert_snapshot!(joined(all));
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let bench = Bench::new().with([("src/parser.rs", "x\n"), ("ten.txt", "1\n2\n")]);
    bench.put("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    fs::write(bench.outside().join("secret"), "s").unwrap();
    symlink(bench.outside().join("secret"), bench.root.join("link")).unwrap();
    let mut all = Vec::new();
    for arguments in [
        json!({"path": "src/praser.rs"}),
        json!({"path": "parser.rs"}),
        json!({"path": "nothing/like/it.go"}),
        json!({"path": "program"}),
        json!({"path": "ten.txt", "offset": 3}),
        json!({"path": "link"}),
        json!({"path": "../secret"}),
        json!({"path": "ten.txt/x"}),
        json!({"path": ""}),
        json!({"path": "ten.txt", "offset": 0}),
    ] {
        all.push(bench.said("read", arguments).await);
    }
    insta::assert_snapshot!(joined(all));
}

#[tokio::test]
async fn a_directory_is_listed() {
    let bench = Bench::new().with([("src/b.rs", ""), ("src/a/c.rs", ""), ("src/.hidden", "")]);
    symlink("b.rs", bench.root.join("src/link")).unwrap();
    for number in 0..301 {
        bench.put(&format!("many/{number:03}"), b"");
    }
    insta::assert_snapshot!(bench.said("read", json!({"path": "src"})).await);
    let many = bench.call("read", json!({"path": "many"})).await;
    let text = many.first_text().unwrap();
    assert_eq!(text.lines().count(), 302);
    assert!(
        text.ends_with("\n299\n[1 entry more not shown; list them with `glob` and a pattern.]"),
        "{text}"
    );
}

#[tokio::test]
async fn a_long_file_is_cut_and_says_how_to_go_on() {
    let bench = Bench::new();
    let text: String = (1..=2500).map(|number| format!("line {number}\n")).collect();
    bench.put("long.txt", text.as_bytes());
    bench.put("wide.txt", format!("{}\nend\n", "ä".repeat(5000)).as_bytes());
    bench.put("heavy.txt", format!("{}\n", "x".repeat(1900)).repeat(100).as_bytes());

    let first = bench.call("read", json!({"path": "long.txt"})).await;
    let text = first.first_text().unwrap();
    assert!(text.starts_with("   1\tline 1\n   2\tline 2\n"));
    assert!(
        text.ends_with("2000\tline 2000\n[Lines 1-2000 of 2500 are shown; read on with offset 2001.]"),
        "{text}"
    );
    let rest = bench.call("read", json!({"path": "long.txt", "offset": 2001})).await;
    assert!(rest.first_text().unwrap().ends_with("2500\tline 2500\n[Lines 2001-2500 of 2500 are shown.]"));

    let wide = bench.call("read", json!({"path": "wide.txt"})).await;
    let expected = format!(
        "1\t{}… [line of 5000 characters cut]\n2\tend\n\
         [Only the first 2000 characters of line 1 are shown; `search` finds text in the rest.]",
        "ä".repeat(2000)
    );
    assert_eq!(wide.first_text().unwrap(), expected);

    let heavy = bench.call("read", json!({"path": "heavy.txt"})).await;
    let text = heavy.first_text().unwrap();
    assert!(text.len() < 70_000);
    assert!(
        text.ends_with(
            "[Lines 1-34 of 100 are shown (the answer would be too large); read on with offset 35.]"
        ),
        "{}",
        &text[text.len() - 200..]
    );
}

#[tokio::test]
async fn a_file_too_large_to_hold_is_streamed() {
    let bench = Bench::new();
    let mut file = fs::File::create(bench.root.join("big.log")).unwrap();
    let block: String = (0..100_000).map(|number| format!("entry {number:07}\r\n")).collect();
    for _ in 0..15 {
        file.write_all(block.as_bytes()).unwrap();
    }
    file.write_all(b"the end").unwrap();
    drop(file);
    let all = [
        bench.said("read", json!({"path": "big.log", "limit": 2})).await,
        bench.said("read", json!({"path": "big.log", "offset": 1_500_000})).await,
        bench.said("read", json!({"path": "big.log", "offset": 1_500_002})).await,
    ];
    insta::assert_snapshot!(joined(all));
}

#[tokio::test]
async fn a_hole_of_many_gigabytes_is_not_loaded() {
    let bench = Bench::new();
    let file = fs::File::create(bench.root.join("hole")).unwrap();
    file.set_len(8 << 30).unwrap();
    insta::assert_snapshot!(bench.said("read", json!({"path": "hole"})).await);
}

fn picture(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgba8(RgbaImage::from_fn(width, height, |x, y| {
        image::Rgba([(x % 256) as u8, (y % 256) as u8, ((x * y) % 256) as u8, 255])
    }))
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = if format == ImageFormat::Jpeg {
        DynamicImage::ImageRgb8(picture.to_rgb8())
    } else {
        picture.clone()
    };
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

async fn image_of(bench: &Bench, path: &str) -> (String, Vec<u8>, Value) {
    let outcome = bench.call("read", json!({"path": path})).await;
    assert!(!outcome.is_error, "{outcome:?}");
    match &outcome.content[..] {
        [Content::Text { text }, Content::Image { mime, data }] => {
            let mut structured = Value::Object(outcome.structured.clone());
            structured["text"] = json!(text);
            (mime.clone(), data.clone(), structured)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn small_pictures_go_out_as_they_are() {
    let bench = Bench::new();
    for (name, format, mime) in [
        ("a.png", ImageFormat::Png, "image/png"),
        ("a.jpg", ImageFormat::Jpeg, "image/jpeg"),
        ("a.gif", ImageFormat::Gif, "image/gif"),
        ("a.webp", ImageFormat::WebP, "image/webp"),
    ] {
        let bytes = encoded(&picture(40, 30), format);
        bench.put(name, &bytes);
        let (got, data, structured) = image_of(&bench, name).await;
        assert_eq!((got.as_str(), &data), (mime, &bytes));
        assert_eq!((&structured["width"], &structured["shown_height"]), (&json!(40), &json!(30)));
    }
    // By content, not by name; a bitmap is converted, since providers do not take it.
    bench.put("picture.txt", &encoded(&picture(8, 8), ImageFormat::Bmp));
    let (mime, data, structured) = image_of(&bench, "picture.txt").await;
    assert_eq!(mime, "image/png");
    assert_eq!(image::load_from_memory(&data).unwrap().to_rgba8(), picture(8, 8).to_rgba8());
    assert!(structured["text"].as_str().unwrap().starts_with("`picture.txt`: BMP picture, 8×8 pixels, "));
}

#[tokio::test]
async fn large_pictures_are_scaled_down_and_say_so() {
    let bench = Bench::new();
    bench.put("wide.png", &encoded(&picture(3136, 100), ImageFormat::Png));
    let (mime, data, structured) = image_of(&bench, "wide.png").await;
    let shown = image::load_from_memory(&data).unwrap();
    assert_eq!((mime.as_str(), shown.width(), shown.height()), ("image/png", 1568, 50));
    assert!(structured["text"].as_str().unwrap().contains("3136×100 pixels"));
    assert!(structured["text"].as_str().unwrap().contains("shown as image/png, 1568×50 pixels"));
}

#[tokio::test]
async fn broken_pictures_and_pixel_bombs_are_refused() {
    let bench = Bench::new();
    let mut cut = encoded(&picture(40, 30), ImageFormat::Png);
    cut.truncate(cut.len() / 2);
    bench.put("cut.png", &cut);
    // A PNG whose header claims 50,000 × 50,000 pixels.
    let mut bomb = encoded(&picture(1, 1), ImageFormat::Png);
    bomb[16..20].copy_from_slice(&50_000_u32.to_be_bytes());
    bomb[20..24].copy_from_slice(&50_000_u32.to_be_bytes());
    let checksum = crc32(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    bench.put("bomb.png", &bomb);
    bench.put("text.bmp", b"BM is not a picture\n");
    let cut = bench.call("read", json!({"path": "cut.png"})).await;
    assert!(cut.is_error);
    assert!(
        cut.all_text().starts_with("`cut.png` is a PNG picture that cannot be decoded: "),
        "{}",
        cut.all_text()
    );
    insta::assert_snapshot!(joined([
        bench.said("read", json!({"path": "bomb.png"})).await,
        bench.said("read", json!({"path": "text.bmp"})).await,
    ]));
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

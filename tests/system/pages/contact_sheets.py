"""Contact sheets: the pictures of one screen beside each other in one small file. Chromium does the work."""

import base64
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser

HEIGHT = 1_000
"""Of a sheet, in pixels. What is below is cut off."""
SCALES = {390: 0.7, 1440: 0.42, 2560: 0.3}
"""Of a picture, by its width."""
GAP = 12
MOST_BYTES = 100_000
DRAW = """async ({ pictures, gap, most, highest, qualities }) => {
  const images = await Promise.all(pictures.map(async ({ url, scale }) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    return { image, width: Math.round(image.width * scale), height: Math.round(image.height * scale), scale };
  }));
  const blobOf = async (quality) => {
    const height = Math.min(highest, Math.max(...images.map((each) => each.height)));
    const canvas = new OffscreenCanvas(images.reduce((sum, each) => sum + each.width + gap, gap), height + 2 * gap);
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#80868e";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.imageSmoothingQuality = "high";
    let left = gap;
    for (const { image, width, height: own, scale } of images) {
      const shown = Math.min(own, height);
      pen.drawImage(image, 0, 0, image.width, shown / scale, left, gap, width, shown);
      left += width + gap;
    }
    return canvas.convertToBlob({ type: "image/webp", quality });
  };
  let blob;
  for (const quality of qualities) {
    blob = await blobOf(quality);
    if (blob.size <= most) break;
  }
  const bytes = new Uint8Array(await blob.arrayBuffer());
  return btoa(Array.from(bytes, (each) => String.fromCharCode(each)).join(""));
}"""
"""Draws the pictures side by side, from the same top edge, with the highest of the qualities that fits."""


def make_sheet(browser: Browser, pictures: Sequence[Path], sheet: Path) -> None:
    """Write the pictures side by side as WebP.

    Args:
        browser: A Chromium.
        pictures: PNG files whose names end in `-WIDTH-COLOURS`.
        sheet: The file to write.
    """
    page = browser.new_page()
    page.goto("about:blank")
    urls = [
        {
            "url": "data:image/png;base64," + base64.b64encode(each.read_bytes()).decode(),
            "scale": SCALES[int(each.stem.split("-")[-2])],
        }
        for each in pictures
    ]
    given = {"pictures": urls, "gap": GAP, "most": MOST_BYTES, "highest": HEIGHT, "qualities": [0.7, 0.5, 0.35, 0.2]}
    sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.write_bytes(base64.b64decode(page.evaluate(DRAW, given)))
    page.close()

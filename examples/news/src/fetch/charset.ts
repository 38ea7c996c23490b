/**
 * Bytes to text. In this order: a byte order mark, the charset of the Content-Type header, the encoding of the XML
 * declaration, UTF-8 if the bytes are valid UTF-8, else windows-1252, which is what undeclared bytes mostly are.
 *
 * A declaration that says UTF-8 although the bytes are not valid is not believed.
 */
export function decode(body: Uint8Array, contentType = ''): string {
  const mark = byMark(body);
  const candidates = [mark, /charset\s*=\s*["']?([\w:.-]+)/i.exec(contentType)?.[1], declared(body), 'utf-8'];
  for (const label of candidates) {
    if (!label) continue;
    const text = tryDecode(body, label);
    if (text !== undefined) return text;
  }
  return western(body);
}

function byMark(body: Uint8Array): string | undefined {
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le';
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be';
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return 'utf-8';
  // No mark, but an XML document in UTF-16 begins with `<` and a zero byte.
  if (body[0] === 0x3c && body[1] === 0) return 'utf-16le';
  if (body[0] === 0 && body[1] === 0x3c) return 'utf-16be';
  return undefined;
}

function declared(body: Uint8Array): string | undefined {
  const head = Buffer.from(body.subarray(0, 200)).toString('latin1');
  return /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w:.-]+)["']/i.exec(head)?.[1];
}

/** What windows-1252 has where Latin-1 has control characters. */
const extra = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** windows-1252, which also stands for Latin-1 on the web. Some versions of Node decode it as if it were Latin-1. */
function western(body: Uint8Array): string {
  return Buffer.from(body).toString('latin1').replace(/[\u0080-\u009f]/g, (c) => extra[c.charCodeAt(0) - 0x80] as string);
}

function tryDecode(body: Uint8Array, label: string): string | undefined {
  try {
    const decoder = new TextDecoder(label, { fatal: true });
    return decoder.encoding === 'windows-1252' ? western(body) : decoder.decode(body);
  } catch {
    // An unknown label, or bytes that are no such text.
    return undefined;
  }
}

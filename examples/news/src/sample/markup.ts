/** The small markup in which the sample posts are written, to HTML. */
import { escape } from '../site/html.js';

function inline(text: string): string {
  return escape(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/!\[([^\]]*)\]\(([^)]+)\)/g, '<img src="$2" alt="$1">')
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, '<a href="$2">$1</a>')
    .replace(/\*([^*\n]+)\*/g, '<em>$1</em>');
}

function table(lines: string[]): string {
  const cells = (line: string) => line.replace(/^\||\|$/g, '').split('|').map((cell) => inline(cell.trim()));
  const [head = '', ...rows] = lines;
  const row = (line: string, tag: string) => `<tr>${cells(line).map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table><thead>${row(head, 'th')}</thead><tbody>${rows.map((line) => row(line, 'td')).join('')}</tbody></table>`;
}

/** Paragraphs; lines indented by four blanks are code; `|` begins a table, `-` a list, `>` a quotation. */
export function toHtml(text: string): string {
  const blocks: string[] = [];
  for (const block of text.split(/\n{2,}/)) {
    const isCode = (block: string | undefined) => block?.startsWith('    ') === true;
    // A blank line within code does not end it.
    if (isCode(block) && isCode(blocks.at(-1))) blocks.push(`${blocks.pop()}\n\n${block}`);
    else blocks.push(block);
  }
  return blocks
    .map((block) => {
      const lines = block.split('\n');
      if (lines.every((line) => line.startsWith('    ') || !line)) return `<pre><code>${escape(lines.map((line) => line.slice(4)).join('\n'))}</code></pre>`;
      if (lines.every((line) => line.startsWith('|'))) return table(lines);
      if (lines.every((line) => line.startsWith('- '))) return `<ul>${lines.map((line) => `<li>${inline(line.slice(2))}</li>`).join('')}</ul>`;
      if (lines.every((line) => line.startsWith('> '))) return `<blockquote><p>${inline(lines.map((line) => line.slice(2)).join(' '))}</p></blockquote>`;
      return `<p>${inline(lines.join(' '))}</p>`;
    })
    .join('\n');
}

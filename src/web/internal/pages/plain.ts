/** Reads the text of any page in one pass, for pages that no extractor can read. */
import { valueAt } from "../../../support/json/valueAt.ts"

const entities: { readonly [name: string]: string } = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " }

const unescape = (text: string): string =>
  text.replaceAll(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal, hexadecimal, name) => {
    if (typeof name === "string") return valueAt(entities, name.toLowerCase()) ?? whole
    const code = typeof decimal === "string" ? Number(decimal) : Number.parseInt(String(hexadecimal), 16)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ""
  })

const inline = /^\/?(?:a|abbr|b|bdi|bdo|cite|code|em|font|i|kbd|mark|q|s|small|span|strong|sub|sup|time|u|var|wbr)$/

const hidden = ["script", "style", "noscript", "template", "svg"]

/** Reads the text between tags, one line for each block. */
export const textOf = (html: string): string => {
  const out: Array<string> = []
  // This letter alone is longer in lower case. Indices of both texts must be equal.
  const lower = html.replaceAll("\u0130", "i").toLowerCase()
  let at = 0
  while (at < html.length) {
    const tag = html.indexOf("<", at)
    if (tag === -1) {
      out.push(html.slice(at))
      break
    }
    out.push(html.slice(at, tag))
    if (html.startsWith("<!--", tag)) {
      const end = html.indexOf("-->", tag + 4)
      if (end === -1) break
      at = end + 3
      continue
    }
    const end = html.indexOf(">", tag)
    if (end === -1) break
    const name = /^\/?[a-z][a-z\d]{0,20}/.exec(lower.slice(tag + 1, tag + 24))?.[0]
    at = end + 1
    if (name === undefined) continue
    if (!inline.test(name)) out.push("\n")
    if (hidden.includes(name)) {
      const close = lower.indexOf(`</${name}`, at)
      if (close === -1) break
      at = close
    }
  }
  return unescape(out.join(""))
    .split("\n")
    .map((line) => line.replaceAll(/[ \t\r]+/g, " ").trim())
    .filter((line, index, lines) => line !== "" || lines[index - 1] !== "")
    .join("\n")
    .trim()
}

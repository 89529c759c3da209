/** Limits a page to a size that a DOM can hold. Deep and endless pages make every extractor hang. */
import { Parser } from "htmlparser2"

const maxDepth = 200
const maxElements = 20_000
const maxNesting = 10_000
const maxAttribute = 4096

const skipped = new Set("script style noscript template svg iframe object".split(" "))
/** Elements that every page has, and elements that belong to its head. */
const implied = new Set(["html", "head", "body"])
const ofHead = new Set(["title", "meta", "link", "base", "script"])
const empty = new Set("area base br col embed hr img input link meta source track wbr".split(" "))

/** Attributes that extraction needs. */
const keptAttributes = new Set([
  ..."href src alt title id class lang colspan rowspan content name property rel type".split(" "),
  ..."itemprop datetime style hidden aria-hidden role".split(" ")
])

// A DOM has a text node for every entity: hundreds of thousands in a page of code. So two characters that no text may
// have replace them.
const lessThan = "\uFDD0"
const ampersand = "\uFDD1"

const hideText = (text: string) =>
  /[<&\uFDD0\uFDD1]/.test(text)
    ? text
        .replaceAll(/[\uFDD0\uFDD1]/g, "")
        .replaceAll("<", lessThan)
        .replaceAll("&", ampersand)
    : text

/** Restores the characters of a text of the limited page. */
export const restoreText = (text: string): string => text.replaceAll(lessThan, "<").replaceAll(ampersand, "&")

const escapeAttribute = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;")

/**
 * Limits the depth, elements and attributes of a page, and removes scripts. `undefined` for a page that is nested too
 * deep. Restore its texts by {@link restoreText}.
 */
export const boundPage = (html: string): string | undefined => {
  const head: Array<string> = []
  const body: Array<string> = []
  const open: Array<{ readonly name: string; readonly isKept: boolean }> = []
  const partOf = (name: string | undefined) => (name !== undefined && ofHead.has(name) ? head : body)
  let elements = 0
  let skipping = 0
  let isHopeless = false
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (open.length > maxNesting) {
          isHopeless = true
          parser.reset()
          return
        }
        const isData = name === "script" && attributes["type"] === "application/ld+json"
        if (skipped.has(name) && !isData) skipping++
        const isKept = skipping === 0 && open.length < maxDepth && ++elements <= maxElements
        open.push({ name, isKept })
        if (!isKept || implied.has(name)) return
        const out = partOf(name)
        out.push("<", name)
        for (const [key, value] of Object.entries(attributes)) {
          if (keptAttributes.has(key)) out.push(" ", key, '="', escapeAttribute(value.slice(0, maxAttribute)), '"')
        }
        out.push(">")
      },
      onclosetag: (name) => {
        const closed = open.pop()
        if (closed?.isKept === true && !empty.has(name) && !implied.has(name)) partOf(name).push("</", name, ">")
        if (skipped.has(name) && skipping > 0) skipping--
      },
      ontext: (text) => {
        if (skipping === 0) partOf(open.at(-1)?.name).push(hideText(text))
      }
    },
    { decodeEntities: true, lowerCaseTags: true }
  )
  for (let at = 0; at < html.length && !isHopeless; at += 65_536) parser.write(html.slice(at, at + 65_536))
  if (isHopeless) return undefined
  parser.end()
  return `<html><head>${head.join("")}</head><body>${body.join("")}</body></html>`
}

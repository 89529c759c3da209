/** The article of a page, as Markdown: by Readability on a DOM of linkedom, and turndown. */
import { Readability } from "@mozilla/readability"
import { parseHTML } from "linkedom"
import TurndownService from "turndown"
import { joinLines } from "../../../support/text/text.ts"
import { bound, shown } from "./bound.ts"
import type { Article } from "./messages.ts"

const maxLinks = 200

/** A link of a page, as a whole address; `undefined` for one that leads nowhere. */
const absolute = (href: string, base: string): string | undefined => {
  if (!URL.canParse(href, base)) return undefined
  const url = new URL(href, base)
  return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined
}

const markdownOf = (
  node: TurndownService.Node,
  base: string
): { readonly markdown: string; readonly links: ReadonlyArray<string> } => {
  const links = new Map<string, number>()
  const service = new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" })
  service.addRule("links", {
    filter: (node) => node.nodeName === "A" && node.getAttribute("href") !== null,
    replacement: (content, node) => {
      const text = content.trim()
      const url = "getAttribute" in node ? absolute(String(node.getAttribute("href")), base) : undefined
      if (url === undefined || text === "" || url.split("#")[0] === base) return content
      const number = links.get(url) ?? links.size + 1
      if (number > maxLinks) return content
      links.set(url, number)
      return `[${text}][${number}]`
    }
  })
  service.addRule("images", {
    filter: "img",
    replacement: (_, node) => {
      const alt = "getAttribute" in node ? String(node.getAttribute("alt") ?? "").trim() : ""
      return alt === "" ? "" : `(image: ${alt})`
    }
  })
  service.addRule("cells", {
    filter: ["th", "td"],
    replacement: (content) => ` ${joinLines(content)} |`
  })
  service.addRule("rows", { filter: "tr", replacement: (content) => `\n|${content}` })
  service.remove(["script", "style", "noscript"])
  const markdown = service.turndown(node).replaceAll(/\n{3,}/g, "\n\n")
  return { markdown: shown(markdown.trim()), links: [...links.keys()] }
}

const textOf = (value: string | null | undefined): string | undefined => {
  const text = shown(value ?? "")
    .replaceAll(/\s+/g, " ")
    .trim()
  return text === "" ? undefined : text.slice(0, 500)
}

/** All that a page says. What looks for the article has changed its tree, so it is read anew. */
const wholeOf = (bounded: string, url: string) => markdownOf(parseHTML(bounded).document.body, url)

/** Readability's tree is one of linkedom, which turndown takes. */
const isTree = (content: unknown): content is TurndownService.Node => typeof content === "object" && content !== null

/** The article of a page; of one that has none, all that it says. `undefined` for a page that is only nesting. */
export const articleOf = (html: string, url: string): Article | undefined => {
  const bounded = bound(html)
  if (bounded === undefined) return undefined
  const { document } = parseHTML(bounded)
  const title = textOf(document.querySelector("title")?.textContent)
  // The tree itself: to write it out and read it again would cost as much as all the rest.
  const found = new Readability(document, { serializer: (node): unknown => node }).parse()
  const content = found?.content
  const first = isTree(content) ? markdownOf(content, url) : undefined
  const { links, markdown } = first === undefined || first.markdown === "" ? wholeOf(bounded, url) : first
  return {
    title: textOf(found?.title) ?? title,
    byline: textOf(found?.byline),
    published: textOf(found?.publishedTime),
    markdown,
    links
  }
}

/** Extracts the article of a page as Markdown, with Readability, linkedom and turndown. */
import { Readability } from "@mozilla/readability"
import { parseHTML } from "linkedom"
import TurndownService from "turndown"
import { joinLines } from "../../../support/text/text.ts"
import { boundPage, restoreText } from "./bound.ts"
import type { Article } from "./messages.ts"

const maxLinks = 200

/** Resolves a link of a page. `undefined` for anything but HTTP. */
const resolveLink = (href: string, base: string): string | undefined => {
  if (!URL.canParse(href, base)) return undefined
  const url = new URL(href, base)
  return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined
}

const convertToMarkdown = (
  node: TurndownService.Node,
  base: string
): { readonly markdown: string; readonly links: ReadonlyArray<string> } => {
  const links = new Map<string, number>()
  const service = new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" })
  service.addRule("links", {
    filter: (node) => node.nodeName === "A" && node.getAttribute("href") !== null,
    replacement: (content, node) => {
      const text = content.trim()
      const url = "getAttribute" in node ? resolveLink(String(node.getAttribute("href")), base) : undefined
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
  return { markdown: restoreText(markdown.trim()), links: [...links.keys()] }
}

const textOf = (value: string | null | undefined): string | undefined => {
  const text = restoreText(value ?? "")
    .replaceAll(/\s+/g, " ")
    .trim()
  return text === "" ? undefined : text.slice(0, 500)
}

/** Converts the whole page. Readability changes the tree, so the page is parsed again. */
const convertPage = (bounded: string, url: string) => convertToMarkdown(parseHTML(bounded).document.body, url)

/** Returns true for the tree of Readability, which turndown accepts. */
const isTree = (content: unknown): content is TurndownService.Node => typeof content === "object" && content !== null

/** Extracts the article of a page, else the whole page. `undefined` for a page that is nested too deep. */
export const extractArticle = (html: string, url: string): Article | undefined => {
  const bounded = boundPage(html)
  if (bounded === undefined) return undefined
  const { document } = parseHTML(bounded)
  const title = textOf(document.querySelector("title")?.textContent)
  // Keeping the tree avoids writing and parsing it again, which is half of the work.
  const article = new Readability(document, { serializer: (node): unknown => node }).parse()
  const content = article?.content
  const first = isTree(content) ? convertToMarkdown(content, url) : undefined
  const { links, markdown } = first === undefined || first.markdown === "" ? convertPage(bounded, url) : first
  return {
    title: textOf(article?.title) ?? title,
    byline: textOf(article?.byline),
    published: textOf(article?.publishedTime),
    markdown,
    links
  }
}

/**
 * Markdown of answers as markup that can't do anything: raw HTML is text, images are buttons, links name their target.
 * A model, a page or a file may have written it.
 */
import DOMPurify, { type Config } from "dompurify"
import { Marked } from "marked"

const escapes: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&#39;"]
])

const escape = (text: string): string => text.replace(/[&<>"']/g, (one) => escapes.get(one) ?? one)

/** The address of a link that may be opened: of the web or a mailbox, and never one of this page. */
export const safeUrl = (href: string): URL | undefined => {
  const url = URL.parse(href.trim())
  return url !== null && ["http:", "https:", "mailto:"].includes(url.protocol) ? url : undefined
}

/** The machine of a link, which stands beside its words. */
export const hostOf = (url: URL): string => (url.protocol === "mailto:" ? url.pathname : url.host)

const link = (href: string, words: string, plain: string): string => {
  const url = safeUrl(href)
  if (url === undefined) return words
  const host = hostOf(url)
  const hostMark = plain.includes(host) ? "" : ` <span class="host">${escape(host)}</span>`
  return `<a href="${escape(url.href)}" title="${escape(url.href)}" target="_blank" rel="noopener noreferrer">${words}${hostMark}</a>`
}

const pictures = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]+$/

const marked = new Marked({
  gfm: true,
  breaks: false,
  async: false,
  renderer: {
    html: ({ text }) => escape(text),
    image: ({ href, text }) => {
      const alt = escape(text === "" ? "without a description" : text)
      if (pictures.test(href)) {
        return `<button type="button" class="picture" data-picture="${escape(href)}">Show image: ${alt}</button>`
      }
      return `<span class="picture">Image: ${link(href, alt, text)}</span>`
    },
    link({ href, text, tokens }) {
      return link(href, this.parser.parseInline(tokens), text)
    },
    checkbox: ({ checked }) => `<span class="box" aria-hidden="true">${checked ? "☑" : "☐"}</span> `
  }
})

/** With `RETURN_TRUSTED_TYPE` the text is a `TrustedHTML` in browsers with Trusted Types, which the policy of the page demands. */
const allowed: Config = {
  ALLOWED_TAGS: [
    ..."a b blockquote br button code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup".split(" "),
    ..."table tbody td th thead tr ul".split(" ")
  ],
  ALLOWED_ATTR: ["align", "class", "data-picture", "href", "rel", "start", "target", "title", "type", "aria-hidden"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  // Attributes that are no addresses.
  ADD_URI_SAFE_ATTR: ["align", "aria-hidden", "data-picture", "rel", "start", "target", "type"],
  RETURN_TRUSTED_TYPE: true
}

/** The longest block that is read as Markdown, in characters. A longer one is shown as it is. */
const longest = 100_000

const markups = new WeakMap<object, string>()

/** Turns Markdown into markup. */
export const markupOf = (text: string): string => {
  const html = text.length > longest ? `<pre>${escape(text)}</pre>` : marked.parse(text, { async: false })
  return DOMPurify.sanitize(html, allowed)
}

/** Turns the Markdown of a finished part into markup, once for each part. */
export const markupOfPart = (part: { readonly markdown: string }): string => {
  const cachedMarkup = markups.get(part)
  if (cachedMarkup !== undefined) return cachedMarkup
  const markup = markupOf(part.markdown)
  markups.set(part, markup)
  return markup
}

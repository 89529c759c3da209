import { assert, describe, it } from "@effect/vitest"
import { Tool, ToolOutput } from "effect-deepagents"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { FetchUrl, WebReader } from "effect-deepagents/web"
import * as NodeWebReader from "effect-deepagents/web/NodeWebReader"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import fc from "fast-check"
import { PDFDocument } from "pdf-lib"
import { kindOf } from "../../src/web/internal/pages/decode.ts"
import { textOf } from "../../src/web/internal/pages/plain.ts"
import { isAllowed } from "../../src/web/internal/pages/robots.ts"
import { serve } from "../net/servers.ts"
import { scaled } from "../scale.ts"
import { layer as client } from "./pages.ts"

const web = Layer.merge(NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }), NodeWebReader.layer())

const paragraph =
  "Ulm lies on the <a href='/danube?a=1'>Danube</a>, and is a city of towers with one very tall church. "

const article = `<!doctype html><html><head><title>Ulm, a city</title><meta name="author" content="Ada"></head><body>
<nav><a href="/nav">Navigation</a></nav><article><h1>Ulm, a city</h1>${`<p>${paragraph.repeat(3)}</p>`.repeat(8)}
<p><a href="javascript:alert(1)">bad</a> <a href="https://example.org/x">elsewhere</a></p></article>
<script>evil()</script></body></html>`

const pdf = Effect.promise(async () => {
  const document = await PDFDocument.create()
  document.addPage().drawText("A page about towers")
  return Buffer.from(await document.save())
})

const pages: Record<string, { readonly type?: string; readonly body: string | Buffer; readonly status?: number }> = {
  "/article": { type: "text/html", body: article },
  "/latin": { type: "text/html; charset=iso-8859-1", body: Buffer.from("<p>M\xfcnchen</p>", "latin1") },
  "/meta": { type: "text/html", body: Buffer.from("<meta charset='windows-1252'><p>M\xfcnchen \x80</p>", "latin1") },
  "/odd": { type: "text/html; charset=no-such", body: "<p>M\u00fcnchen</p>" },
  "/json": { type: "application/json", body: '{"towers":1}' },
  "/csv": { type: "text/csv", body: "a,b\n1,2" },
  "/rss": {
    type: "text/html",
    body: `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><item><title>One &amp; only</title><link>https://e.test/1</link><pubDate>Mon, 1 Jan 2026</pubDate><description><![CDATA[<b>bold</b> words]]></description></item></channel></rss>`
  },
  "/atom": {
    type: "application/atom+xml",
    body: `<feed xmlns="http://www.w3.org/2005/Atom"><title>Blog</title><entry><title>Post</title><link href="https://e.test/2"/><updated>2026-01-02</updated></entry></feed>`
  },
  "/sitemap.xml": {
    type: "application/xml",
    body: `<?xml version="1.0"?><urlset xmlns="x"><url><loc>https://e.test/a</loc><lastmod>2026-01-01</lastmod></url><url><loc>https://e.test/b</loc></url></urlset>`
  },
  "/image": { type: "text/html", body: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0]) },
  "/missing": { type: "text/html", body: "<h1>Nothing here</h1>", status: 404 },
  "/nested": { type: "text/html", body: `${"<div>".repeat(50_000)}deep` },
  "/turkish": { type: "text/html", body: `${"\u0130".repeat(50)}<p>seen</p><script>hidden()</script><p>more</p>` },
  "/robots.txt": { type: "text/plain", body: "User-agent: *\nDisallow: /secret\n" },
  "/secret": { type: "text/plain", body: "secret" }
}

const site = serve((request, response) => {
  if (request.url === "/to-secret") {
    response.writeHead(302, { location: "/secret" }).end()
    return
  }
  const page = pages[request.url ?? ""]
  response.writeHead(page?.status ?? (page === undefined ? 404 : 200), { "content-type": page?.type ?? "text/plain" })
  response.end(page?.body ?? "none")
})

const utf16 = (text: string) => Buffer.from(text, "utf16le")

const page = (head: string, body: string | Buffer) =>
  Buffer.concat([`<!doctype html><head>${head}</head><body><p>`, body, "</p></body>"].map((part) => Buffer.from(part)))

/** 日本語 in Shift_JIS. */
const japanese = Buffer.from([0x93, 0xfa, 0x96, 0x7b, 0x8c, 0xea])

const tool = FetchUrl.make({ pageLength: 400 })

const readUrl = (url: string, more: { mode?: "text" | "raw"; offset?: number } = {}) =>
  Effect.map(Tool.run(tool, { url, ...more }), ToolOutput.text)

describe("fetch_url", () => {
  it.effect("gives the article as Markdown with numbered links, quoted, as a source, in parts", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* site
      const output = yield* Tool.run(tool, { url: `${url}/article` })
      const text = ToolOutput.text(output)
      assert.include(text, "> # Ulm, a city\n")
      assert.include(text, "> By Ada")
      assert.include(text, "[Danube][1]")
      assert.notInclude(text, "Navigation")
      assert.strictEqual(output.sources?.[0]?.url, `${url}/article`)
      assert.strictEqual(output.sources?.[0]?.title, "Ulm, a city")
      const [, next = ""] = /call again with offset (\d+)/.exec(text) ?? []
      const length = Number(/of (\d+);/.exec(text)?.[1])
      let offset = Number(next)
      let whole = text
      while (offset < length) {
        const part = yield* readUrl(`${url}/article`, { offset })
        whole += part
        offset = Number(/to (\d+) of/.exec(part)?.[1])
      }
      assert.include(whole, `> [1]: ${url}/danube?a=1`)
      assert.include(whole, "> [2]: https://example.org/x")
      assert.notInclude(whole, "javascript:")
      assert.strictEqual(seen.length, 1)
    }).pipe(Effect.provide(web))
  )

  it.effect("detects type and encoding by the bytes", () =>
    Effect.gen(function* () {
      const { url } = yield* site
      for (const page of ["latin", "meta", "odd"]) assert.include(yield* readUrl(`${url}/${page}`), "München", page)
      assert.include(yield* readUrl(`${url}/meta`), "€")
      assert.include(yield* readUrl(`${url}/json`), '> {"towers":1}')
      assert.include(yield* readUrl(`${url}/csv`), "> a,b\n> 1,2")
      const rss = yield* readUrl(`${url}/rss`)
      for (const part of ["One & only", "https://e.test/1", "Mon, 1 Jan 2026", "bold words"]) assert.include(rss, part)
      const atom = yield* readUrl(`${url}/atom`)
      for (const part of ["Post", "https://e.test/2", "2026-01-02"]) assert.include(atom, part)
      assert.include(yield* readUrl(`${url}/sitemap.xml`), "> - https://e.test/a (2026-01-01)\n> - https://e.test/b")
      assert.include(yield* readUrl(`${url}/article`, { mode: "raw" }), "<!doctype html>")
      assert.include(yield* readUrl(`${url}/article`, { mode: "text" }), "> Navigation")
      const bytes = yield* pdf
      const documents = yield* serve((_, response) => response.end(bytes))
      assert.include(yield* readUrl(`${documents.url}/file`), "A page about towers")
    }).pipe(Effect.provide(web))
  )

  it.effect.each([
    ["bytes of UTF-16 with a mark", utf16("\ufeffgrüße 日本"), "text/html"],
    ["bytes of UTF-16, as the header says", utf16("grüße 日本"), "text/html; charset=utf-16le"],
    ["bytes of UTF-16, the other way round", utf16("\ufeffgrüße 日本").swap16(), "text/plain"],
    ["UTF-8, and a header that lies", page("", "grüße 日本"), "text/html; charset=iso-8859-1"],
    ["UTF-8, and a page that lies", page('<meta charset="shift_jis">', "grüße 日本"), "text/html"],
    ["UTF-8, and a page that says what can't be", page('<meta charset="utf-16">', "grüße 日本"), "text/html"],
    ["UTF-8, and a header that says what can't be", page("", "grüße 日本"), "text/html; charset=utf-16"],
    ["an encoding that nobody knows", page("", "grüße 日本"), "text/html; charset=klingon"]
  ] as const)("reads %s", ([, bytes, type]) =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(200, { "content-type": type }).end(bytes))
      assert.include(yield* readUrl(server.url), "grüße 日本")
    }).pipe(Effect.provide(web))
  )

  it.effect.each([
    ["the header", page("", japanese), "text/html; charset=Shift_JIS"],
    [
      "the page",
      page('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', japanese),
      "text/html"
    ],
    ["the page, and the header lies", page("<meta charset=shift_jis>", japanese), "text/html; charset=utf-8"]
  ] as const)("reads Shift_JIS by %s", ([, bytes, type]) =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(200, { "content-type": type }).end(bytes))
      assert.include(yield* readUrl(server.url), "日本語")
    }).pipe(Effect.provide(web))
  )

  it.effect("reads a page without a declared encoding like old pages", () =>
    Effect.gen(function* () {
      const bytes = page("", Buffer.from("M\xfcnchen \x80", "latin1"))
      const server = yield* serve((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(bytes))
      assert.include(yield* readUrl(server.url), "München €")
    }).pipe(Effect.provide(web))
  )

  it.effect.each([
    "<!doctype html><head><title>t</title></head><body><p>read</p></body>",
    "<!doctype html><title>t</title><p>read",
    "<body><p>read",
    "<html><head></head><body></body></html><p>read</p>",
    "<p>re<b>ad</b><body>",
    "<HTML><BODY>read"
  ])("reads a page whatever tags it leaves out: %s", (body) =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(body))
      assert.match((yield* readUrl(server.url)).replaceAll("*", ""), /> read\n/)
    }).pipe(Effect.provide(web))
  )

  it.effect("keeps the characters of code", () =>
    Effect.gen(function* () {
      const code =
        "<h1>a &lt; b &amp;amp; c</h1><p>x &amp;lt; y &amp; z \ufdd0</p><pre>if (a &lt; b &amp;&amp; c) {}</pre>"
      const server = yield* serve((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(code))
      const text = yield* readUrl(server.url)
      for (const part of ["a < b &amp; c", "x &lt; y & z", "if (a < b && c) {}"]) assert.include(text, part)
    }).pipe(Effect.provide(web))
  )

  it.effect("reports the problem", () =>
    Effect.gen(function* () {
      const { url } = yield* site
      const problem = (address: string) => Effect.map(Effect.flip(readUrl(address)), ({ message }) => message)
      assert.match(yield* problem(`${url}/image`), /is no text/)
      assert.match(yield* problem(`${url}/missing`), /answered 404: "Nothing here"/)
      assert.match(yield* problem("not a url"), /no URL/)
      assert.match(yield* problem("file:///etc/passwd"), /scheme "file"/)
      assert.match(yield* problem("http://localhost:1/"), /name of this machine/)
      assert.match(yield* problem("http://127.0.0.1:1/"), /ECONNREFUSED|bad port/i)
      // A page that no extractor reads is read as text.
      assert.match(yield* readUrl(`${url}/nested`), /nested too deep[^]*> deep/)
    }).pipe(Effect.provide(web))
  )

  it.effect("reads an answer without a body by any client", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(readUrl("https://example.com/x"))
      assert.strictEqual(missing.message, "https://example.com answered 404")
      const robots = FetchUrl.make({ robots: true })
      const polite = yield* Effect.flip(Tool.run(robots, { url: "https://example.com/x" }))
      assert.strictEqual(polite.message, "https://example.com answered 404")
    }).pipe(Effect.provide([client(() => new Response(null, { status: 404 })), NodeWebReader.layer()]))
  )

  it.effect("tells hidden text from visible text, behind any letters", () =>
    Effect.gen(function* () {
      const { url } = yield* site
      const text = yield* readUrl(`${url}/turkish`, { mode: "text" })
      assert.match(text, /seen[\s>]*more/)
      assert.notInclude(text, "hidden")
    }).pipe(Effect.provide(web))
  )

  it.effect("obeys robots.txt if told to", () =>
    Effect.gen(function* () {
      const { url } = yield* site
      const polite = FetchUrl.make({ robots: true })
      const refused = yield* Effect.flip(Tool.run(polite, { url: `${url}/secret` }))
      assert.match(refused.message, /robots\.txt/)
      assert.match((yield* Effect.flip(Tool.run(polite, { url: `${url}/to-secret` }))).message, /robots\.txt/)
      assert.include(ToolOutput.text(yield* Tool.run(polite, { url: `${url}/json` })), "towers")
      assert.include(yield* readUrl(`${url}/secret`), "> secret")
    }).pipe(Effect.provide(web))
  )

  it.live("ends a page that takes too long, and reads the next one", () =>
    Effect.gen(function* () {
      const slow = `<title>Slow</title>${"<p>x</p>".repeat(20_000)}`
      const server = yield* serve((request, response) =>
        response.writeHead(200, { "content-type": "text/html" }).end(request.url === "/slow" ? slow : article)
      )
      const hasty = Layer.merge(
        NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }),
        NodeWebReader.layer({ timeout: 700 })
      )
      yield* Effect.gen(function* () {
        assert.include(yield* readUrl(`${server.url}/slow`), "took longer than")
        assert.include(yield* Effect.eventually(readUrl(`${server.url}/fast`)), "Ulm")
      }).pipe(Effect.provide(hasty))
    })
  )
})

describe("a thread", () => {
  it.live("is ended when it takes too much memory, and the program goes on", () =>
    Effect.gen(function* () {
      const { read } = yield* WebReader.WebReader
      const large = `<article>${`<p>${"word <b>bold</b> ".repeat(60)}</p>`.repeat(3000)}</article>`
      const failed = yield* Effect.flip(read(large, "https://e.test/"))
      assert.strictEqual(failed.message, "it took more than 40 MB")
      assert.include((yield* read(article, "https://e.test/")).markdown, "Ulm")
    }).pipe(Effect.provide(NodeWebReader.layer({ maxMemory: 40, timeout: "1 minute" })))
  )

  it.live("takes no time and memory to speak of for pages of one thing a million times", () =>
    Effect.gen(function* () {
      const { read } = yield* WebReader.WebReader
      for (const [part, shown] of [
        ["&lt;", "<"],
        ["&amp;", "&"],
        ["a< ", "a<"],
        ["x", "x"]
      ] as const) {
        const { markdown } = yield* read(`<p>${part.repeat(300_000)}</p>`, "https://e.test/")
        assert.include(markdown.slice(0, 100), shown)
      }
    }).pipe(Effect.provide(NodeWebReader.layer({ maxMemory: 256, timeout: "1 minute" })))
  )
})

describe("robots", () => {
  it("takes the group of the program, and the longest rule", () => {
    const file =
      "User-agent: *\nDisallow: /\n\nUser-agent: Deep\nUser-agent: other\nAllow: /a/b$\nDisallow: /a\nDisallow: /*.pdf$"
    assert.isFalse(isAllowed(file, "stranger", "/"))
    assert.isTrue(isAllowed(file, "deep-agent", "/"))
    assert.isFalse(isAllowed(file, "deep-agent", "/a/c"))
    assert.isTrue(isAllowed(file, "deep-agent", "/a/b"))
    assert.isFalse(isAllowed(file, "deep-agent", "/x/y.pdf"))
    assert.isTrue(isAllowed(file, "deep-agent", "/x/y.pdfx"))
    assert.isTrue(isAllowed("", "any", "/"))
  })

  it.each(["/private/x", "/%70rivate/x", "/r%C3%A9sum%c3%a9", "/a%2fb", "/a%2Fb", "/~ada", "/%7Eada", "/%7eada"])(
    "no other spelling of a path leads around a rule: %s",
    (path) => {
      const file = "User-agent: *\nDisallow: /private/\nDisallow: /résumé\nDisallow: /a%2fb\nDisallow: /%7Eada"
      assert.isFalse(isAllowed(file, "x", path))
      assert.isTrue(isAllowed(file, "x", "/a/b"))
    }
  )

  it("never throws, and is done at once", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        (file, path) => typeof isAllowed(`User-agent: *\n${file}`, "x", path) === "boolean"
      ),
      { numRuns: scaled(400) }
    )
    assert.isFalse(isAllowed(`${"User-agent: *\n".repeat(17_000)}${"Disallow: /\n".repeat(20_000)}`, "x", "/"))
    assert.isTrue(isAllowed(`User-agent: *\nDisallow: /${"a*".repeat(100_000)}b`, "x", `/${"a".repeat(100_000)}`))
  })
})

describe("plain text", () => {
  it("takes time in proportion to any page", () => {
    for (const part of ["<", "<!--", "<script>", "&", "&#", "<a ", "</", "<style", "\n", " "]) {
      textOf(part.repeat(200_000))
    }
    assert.strictEqual(textOf("<p>a&amp;b<script>x<y</script><p>c <b>d</b>&#x41;"), "a&b\n\nc dA")
    assert.strictEqual(textOf("a &constructor; &toString; &__proto__; b"), "a &constructor; &toString; &__proto__; b")
  })

  it("tells text from feeds by the first element, behind any prologue", () => {
    const kind = (text: string) => kindOf(new TextEncoder().encode(text), "", "https://e.test/x")
    const before = '<?xml version="1.0"?>\n<?style x?><!-- <rss> --> <!---->'
    assert.strictEqual(kind(`${before}<rss version="2.0">`), "feed")
    assert.strictEqual(kind(`${before}<rdf:RDF xmlns="x">`), "feed")
    assert.strictEqual(kind(`${before}<urlset>`), "sitemap")
    assert.strictEqual(kind(`${before}<html>`), "html")
    assert.strictEqual(kind("<!-- <rss>"), "html")
    assert.strictEqual(kind(`${"<!---->".repeat(500)}x`), "html")
    assert.strictEqual(kind(`${"<!---->".repeat(500)}<feed>`), "feed")
  })

  it("never throws", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.string(), (bytes, type) => {
        kindOf(bytes, type, "https://e.test/x")
        textOf(String.fromCharCode(...bytes))
        return true
      }),
      { numRuns: scaled(400) }
    )
  })
})

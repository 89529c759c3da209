/** Finds the article of a web page, as Markdown. On Node, `NodeWebReader.layer` is one. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The article of a page: its Markdown, where `[text][1]` leads to the first of `links`. */
export interface Article {
  readonly title: string | undefined
  readonly byline: string | undefined
  readonly published: string | undefined
  readonly markdown: string
  readonly links: ReadonlyArray<string>
}

/** A page could not be read: it took too long, too much memory, or the packages for it are missing. */
export class Unreadable extends Schema.TaggedError<Unreadable>("effect-deepagents/WebReader/Unreadable")("Unreadable", {
  message: Schema.String
}) {}

/** Reads pages: the HTML, and the URL that its links are relative to. */
export class WebReader extends Context.Service<
  WebReader,
  { readonly read: (html: string, url: string) => Effect.Effect<Article, Unreadable> }
>()("effect-deepagents/WebReader") {}

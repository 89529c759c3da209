/** Extracts the article of a web page as Markdown. `NodeWebReader.layer` implements it on Node. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import type { Article } from "./internal/pages/messages.ts"

/** Reading a page failed: it took too much time or memory, or a package is missing. */
export class Unreadable extends TaggedError<Unreadable>("effect-deepagents/WebReader/Unreadable")("Unreadable", {
  message: Schema.String
}) {}

/** Reads the HTML of a page. Links are relative to `url`. */
export class WebReader extends Context.Service<
  WebReader,
  { readonly read: (html: string, url: string) => Effect.Effect<Article, Unreadable> }
>()("effect-deepagents/WebReader") {}

/** Messages between the program and the thread that reads pages. */

/** The article of a page. In the Markdown, `[text][1]` refers to the first of `links`. */
export interface Article {
  readonly title: string | undefined
  readonly byline: string | undefined
  readonly published: string | undefined
  readonly markdown: string
  readonly links: ReadonlyArray<string>
}

/** A request to read a page. */
export interface Ask {
  readonly id: number
  readonly html: string
  readonly url: string
}

/** The article, or the reason of a failure. */
export type Answer =
  | { readonly id: number; readonly article: Article }
  | { readonly id: number; readonly problem: string }

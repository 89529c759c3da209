/** Messages to the reader of a page, and its answers. */

/** The article of a page. */
export interface Article {
  readonly title: string | undefined
  readonly byline: string | undefined
  readonly published: string | undefined
  readonly markdown: string
  readonly links: ReadonlyArray<string>
}

/** A page to read. */
export interface Ask {
  readonly id: number
  readonly html: string
  readonly url: string
}

/** Its article, or why there is none. */
export type Answer =
  | { readonly id: number; readonly article: Article }
  | { readonly id: number; readonly problem: string }

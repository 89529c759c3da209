/** The words of rich text that name groups and characters. */

/** Groups whose content is no text of the document. */
export const skipped = new Set(
  "fonttbl colortbl stylesheet info pict objdata sn sv sp nonshppict listtable listoverridetable xmlnstbl filetbl themedata colorschememapping datastore latentstyles atnid".split(
    " "
  )
)

/** Groups that may be ignored by their mark, and are read here. */
export const known = new Set(["shpinst", "annotation", "atnauthor", "pntext"])

/** Headers and footers, of left, right and first pages too. */
export const edges = /^(header|footer)[lrf]?$/

/** Words that stand for a character. */
export const characters: { readonly [word: string]: string } = {
  line: "\n",
  tab: "\t",
  emdash: "—",
  endash: "–",
  bullet: "•",
  lquote: "‘",
  rquote: "’",
  ldblquote: "“",
  rdblquote: "”",
  nestcell: " "
}

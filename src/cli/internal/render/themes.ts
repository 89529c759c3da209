/** The themes of the chat: colour codes of the terminal's own palette, or of an extension. */

const plain: Palette = {}

/** `bright` is for dark backgrounds that make blue and red unreadable. `mono` has only bold, dim and underline. */
const palettes = new Map<string, Palette>([
  ["auto", { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 }],
  ["bright", { red: 91, green: 92, yellow: 93, blue: 94, magenta: 95, cyan: 96 }],
  ["mono", plain],
  ["none", plain]
])

/** The themes of the program. */
export const themes = ["auto", "bright", "mono", "none"] as const

/** The name of a theme. Themes of extensions are `extension:theme`. */
export type Theme = string

/** The names that a setting may have. The extension of a theme may be missing. */
export const themeName = /^(?:auto|bright|mono|none|[a-z][a-z0-9-]*:[\w-]{1,40})$/

export type Colour = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan"

/** Codes by colour. A theme without a code leaves the text as it is. */
type Palette = { readonly [C in Colour]?: number | string | undefined }

const isCode = (code: unknown): boolean => /^\d{1,3}(?:;\d{1,3}){0,4}$/.test(String(code))

/** Adds the theme of an extension. Invalid codes are left out. */
export const addThemes = (name: string, palette: Palette): void => {
  if (!themeName.test(name)) return
  palettes.set(name, Object.fromEntries(Object.entries(palette).filter(([, code]) => isCode(code))))
}

/** Lists the themes to choose from. */
export const themeNames = (): ReadonlyArray<string> => [...palettes.keys()]

/** The code of a colour in a theme. A theme that is missing is `auto`. */
export const codeOf = (theme: Theme, colour: Colour): number | string | undefined =>
  (palettes.get(theme) ?? palettes.get("auto"))?.[colour]

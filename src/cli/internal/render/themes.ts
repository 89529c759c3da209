/** The themes of the chat. */

export const themes = ["auto", "bright", "mono", "none"] as const

export type Theme = (typeof themes)[number]

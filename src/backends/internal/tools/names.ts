/** The tools, in the order in which they are offered. */
export const names = ["ls", "read_file", "write_file", "edit_file", "delete_file", "move_file", "glob", "grep"] as const

export type Name = (typeof names)[number]

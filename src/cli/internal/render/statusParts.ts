/** The parts that a status line may have. */

export const statusParts = ["mode", "agent", "model", "folder", "branch", "context", "cost", "session"] as const

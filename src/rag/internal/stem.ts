/** The stems of English words, by Porter's algorithm, as FTS5's `porter` makes them. */

const consonant = "[^aeiou]"
const vowel = "[aeiouy]"
const consonants = `${consonant}[^aeiouy]*`
const vowels = `${vowel}[aeiou]*`

const hasMeasure = new RegExp(`^(?:${consonants})?${vowels}${consonants}`)
const hasMeasureOne = new RegExp(`^(?:${consonants})?${vowels}${consonants}(?:${vowels})?$`)
const hasMeasureTwo = new RegExp(`^(?:${consonants})?${vowels}${consonants}${vowels}${consonants}`)
const hasVowel = new RegExp(`^(?:${consonants})?${vowel}`)
const endsShort = new RegExp(`^${consonants}${vowel}[^aeiouwxy]$`)

type Rules = ReadonlyArray<readonly [ending: string, replacement: string]>

const second: Rules = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["logi", "log"],
  ["bli", "ble"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"]
]

const third: Rules = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""]
]

const fourth = [
  "al",
  "ance",
  "ence",
  "er",
  "ic",
  "able",
  "ible",
  "ant",
  "ement",
  "ment",
  "ent",
  "ou",
  "ism",
  "ate",
  "iti",
  "ous",
  "ive",
  "ize"
]

const longestFirst = (rules: Rules): Rules => rules.toSorted((left, right) => right[0].length - left[0].length)
const seconds = longestFirst(second)
const thirds = longestFirst(third)
const fourths = fourth.toSorted((left, right) => right.length - left.length)

const replaceEnding = (word: string, rules: Rules): string => {
  const rule = rules.find(([ending]) => word.endsWith(ending))
  if (rule === undefined) return word
  const stem = word.slice(0, -rule[0].length)
  return hasMeasure.test(stem) ? stem + rule[1] : word
}

const removePlural = (word: string): string => {
  if (word.endsWith("sses") || word.endsWith("ies")) return word.slice(0, -2)
  return word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word
}

const mend = (stem: string): string => {
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`
  if (/([^aeiouylsz])\1$/.test(stem)) return stem.slice(0, -1)
  return endsShort.test(stem) ? `${stem}e` : stem
}

const removePast = (word: string): string => {
  if (word.endsWith("eed")) return hasMeasure.test(word.slice(0, -3)) ? word.slice(0, -1) : word
  const stem = word.endsWith("ed") ? word.slice(0, -2) : word.endsWith("ing") ? word.slice(0, -3) : undefined
  return stem === undefined || !hasVowel.test(stem) ? word : mend(stem)
}

const removeLong = (word: string): string => {
  if (/[st]ion$/.test(word)) {
    const stem = word.slice(0, -3)
    return hasMeasureTwo.test(stem) ? stem : word
  }
  const ending = fourths.find((one) => word.endsWith(one))
  if (ending === undefined) return word
  const stem = word.slice(0, -ending.length)
  return hasMeasureTwo.test(stem) ? stem : word
}

const removeLastE = (word: string): string => {
  const stem = word.endsWith("e") ? word.slice(0, -1) : word
  const isShort = hasMeasureOne.test(stem) && !endsShort.test(stem)
  const cut = word.endsWith("e") && (hasMeasureTwo.test(stem) || isShort) ? stem : word
  return cut.endsWith("ll") && hasMeasureTwo.test(cut) ? cut.slice(0, -1) : cut
}

/** The stem of a word in lower case. Words of other scripts stay as they are. */
export const stem = (word: string): string => {
  if (word.length < 3 || word.length > 64 || !/^[a-z]+$/.test(word)) return word
  const begin = word.startsWith("y") ? `Y${word.slice(1)}` : word
  let now = removePast(removePlural(begin))
  if (now.endsWith("y") && hasVowel.test(now.slice(0, -1))) now = `${now.slice(0, -1)}i`
  now = removeLastE(removeLong(replaceEnding(replaceEnding(now, seconds), thirds)))
  return now.startsWith("Y") ? `y${now.slice(1)}` : now
}

/** A word as it is compared: without accents, by its stem. */
export const termOf = (word: string): string => stem(word.normalize("NFD").replaceAll(/\p{M}/gu, ""))

package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
)

// countWords returns how often each word occurs, without regard to case.
func countWords(scanner *bufio.Scanner) map[string]int {
	counts := make(map[string]int)
	for scanner.Scan() {
		counts[strings.ToLower(scanner.Text())]++
	}
	return counts
}

func main() {
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Split(bufio.ScanWords)
	counts := countWords(scanner)

	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool { return counts[words[i]] > counts[words[j]] })

	for _, word := range words {
		fmt.Printf("%6d %s\n", counts[word], word)
	}
}

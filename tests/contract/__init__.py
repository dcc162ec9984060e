"""What a tool must be and do, sentence by sentence, and the tests that prove each of them."""

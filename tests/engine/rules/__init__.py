"""What the rules of docs/spec/engine.md say, as small scripts that Kafka's engine has answered."""
